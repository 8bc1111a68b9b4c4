"""Make a checkout of the repository in another folder, and run `cs336` in it as any user."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from staff.paths import ROOT
from staff.tests.support import Run

NAME = "Käse & Brot, 日本語"
WITH_MOUNTS = ["unshare", "--mount", *["--map-root-user"] * (os.getuid() != 0)]
"""The start of a command line. It runs the rest of the line in a new mount namespace."""
ORDINARY = 54_321
"""The id of a user without a name or a home folder."""
_PARTS = ("adapters.py", "cs336_basics", "labs", "pyproject.toml", "staff", "tests")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*")


@dataclass(frozen=True)
class Elsewhere:
    """A checkout with its own Python environment, and with folders to write to."""

    checkout: Path
    python: Path
    work: Path
    """The current folder of every run, and the value of `HOME`."""
    temporary: Path
    out: Path

    def run(
        self,
        *arguments: str | Path,
        user: int | None = None,
        path: str = os.environ["PATH"],
        before: str = "",
        after: str = ":",
    ) -> Run:
        """Run `cs336` in the checkout.

        Args:
            arguments: the arguments of `cs336`.
            user: the id of the user that runs the command; by default the current user.
            path: the value of `PATH`.
            before: a shell script that runs first, in a new mount namespace.
            after: a shell script that runs last; without `before` it is ignored.
        """
        command: Sequence[str] = [str(self.python), "-m", "staff.cli", *map(str, arguments)]
        if before:
            script = f'set -e\n{before}\nset +e\n"$@"\nstatus=$?\n{after}\nexit $status'
            command = [*WITH_MOUNTS, "sh", "-c", script, "sh", *command]
        environment: Mapping[str, str] = {
            "PATH": path,
            "HOME": str(self.work),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            capture_output=True,
            timeout=300,
            check=False,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        return Run(done.returncode, (done.stdout + done.stderr).decode("utf-8"))

    def files(self) -> dict[str, int]:
        """Return the modification time of every file of the checkout, by path."""
        found = (path for path in self.checkout.rglob("*") if path.is_file())
        return {str(path): path.stat().st_mtime_ns for path in found}


@contextmanager
def elsewhere(python: Path) -> Iterator[Elsewhere]:
    """Copy the checkout to a folder whose name has spaces and letters that are not ASCII."""
    with TemporaryDirectory(prefix="cs336 ") as folder:
        place = Path(folder).resolve() / NAME
        checkout, environment = place / "checkout", place / "environment"
        checkout.mkdir(parents=True)
        place.parent.chmod(0o755)
        for part in _PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, checkout / part, ignore=_LEFT_OUT)
            else:
                shutil.copy(ROOT / part, checkout / part)
        subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
        paths = [str(checkout), *_libraries()]
        [library] = environment.glob("lib/python3*/site-packages")
        (library / "here.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")
        folders = [place / name for name in ("work", "temporary", "out")]
        for made in folders:
            made.mkdir()
            made.chmod(0o777)
        yield Elsewhere(checkout, environment / "bin/python", *folders)


def pythons() -> list[Path]:
    """List the interpreters of this Python version: the current one first, then the system's."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = Path(sys.base_prefix) / "bin" / version
    found = [own, Path("/usr/bin") / version, Path("/usr/local/bin") / version]
    return [path for path in found if path.exists()]


def readable_by_all(path: Path) -> bool:
    """Whether every user of the machine may read a file or folder."""
    real = path.resolve()
    return bool(real.stat().st_mode & 0o004) and all(p.stat().st_mode & 0o001 for p in real.parents)


def _libraries() -> list[str]:
    """List the folders where this environment's packages are installed."""
    ours = [path for path in sys.path if path.endswith("site-packages")]
    return list(dict.fromkeys([sysconfig.get_path("purelib"), *ours]))


def libraries_for_all() -> bool:
    """Whether every user may read the folders of the installed packages."""
    return all(readable_by_all(Path(path)) for path in _libraries() if Path(path).exists())
