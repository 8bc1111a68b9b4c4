"""The bridge for a student: it imports the submission into this process.

A debugger can therefore step from a test into the student's code.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from tests.harness.annotated import Annotated
from tests.harness.bridge import Answer, Missing, Raised
from tests.harness.loading import load_adapters, prove_origin
from tests.harness.plain import Plain, after_call, plain, realise
from tests.harness.probes import run_probe
from tests.harness.recipes import named_shortly
from tests.harness.submission import Submission, first_line


class InProcess:
    """A backend that runs a submission in this process; it implements `Bridge`.

    Args:
        submission: the submission.
        device: the device that inputs are moved to before a call.
        annotate: whether a call that raised is repeated with checks of its annotations.

    Raises:
        SubmissionError: the submission can't be imported.
    """

    def __init__(
        self, submission: Submission, device: str = "cpu", *, annotate: bool = True
    ) -> None:
        self.submission = submission
        self.layout = submission.layout
        self.device = device
        try:
            self._adapters = load_adapters(submission)
        finally:
            _restore_torch()
        self._annotated = Annotated(submission) if annotate else None
        self._asked: set[str] = set()
        self._modules_seen = len(sys.modules)

    def begin(self, task: str) -> None:
        """Do nothing: this process keeps its submission. See `Bridge.begin`."""

    def call(
        self,
        adapter: str,
        arguments: Mapping[str, Plain],
        cotangent: Tensor | None = None,
        wrt: Sequence[str] = (),
        *,
        inputs: bool = False,
        refusal: bool = False,
    ) -> Answer | Raised:
        """Call an adapter; see `Bridge.call`."""
        function: Callable[..., Any] | None = getattr(self._adapters, adapter, None)
        if function is None:
            raise Missing(f"{self.submission.adapters_file.name} has no {adapter}")
        device = torch.device("cpu" if refusal else self.device)
        real = realise(dict(arguments), device)
        for name in wrt:
            real[name].requires_grad_()
        try:
            with torch.enable_grad():
                output = function(**real)
                _restore_torch()
                gradients = _gradients(output, real, cotangent, wrt)
            where = output.device.type if isinstance(output, Tensor) else self.device
            left = after_call(real) if inputs else {}
            return Answer(plain(output), left, gradients, where)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - every exception of a submission is a result
            clear = refusal or isinstance(error, NotImplementedError)
            return self._raised(error, "" if clear else self.complaint(adapter, arguments))
        finally:
            _restore_torch()
            self._prove_origin()

    def probe(self, name: str, arguments: Mapping[str, Plain]) -> Plain | Raised:
        """Run a probe; see `Bridge.probe`."""
        try:
            real = realise(dict(arguments), torch.device("cpu"))
            return run_probe(name, _Restoring(self._adapters), real)
        except (KeyboardInterrupt, Missing):
            raise
        except BaseException as error:  # noqa: BLE001 - every exception of a submission is a result
            return self._raised(error)
        finally:
            _restore_torch()
            self._prove_origin()

    def complaint(self, adapter: str, arguments: Mapping[str, Plain]) -> str:
        """Repeat a call that raised, and describe the annotation that it violates.

        Each adapter is checked once: a second check would give the same line.

        Returns:
            one line, or "" if no annotation is violated or the adapter was checked before.
        """
        if self._annotated is None or adapter in self._asked:
            return ""
        self._asked.add(adapter)
        again = realise(dict(arguments), torch.device(self.device))
        return self._annotated.complaint(adapter, again)

    def _raised(self, error: BaseException, annotations: str = "") -> Raised:
        frames = self.submission.frames(error)
        text = named_shortly(first_line(error))
        return Raised(type(error).__name__, text, frames, annotations, error)

    def _prove_origin(self) -> None:
        if len(sys.modules) != self._modules_seen:
            prove_origin(self.submission)
            self._modules_seen = len(sys.modules)


class _Restoring:
    """The adapters for a probe: each call restores the global settings of PyTorch afterwards.

    A probe computes between two calls, so it must not run with settings of the submission.
    """

    def __init__(self, adapters: ModuleType) -> None:
        self._adapters = adapters

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._adapters, name)
        if not isinstance(found, FunctionType):
            return found

        @functools.wraps(found)
        def restoring(*args: Any, **kwargs: Any) -> Any:
            try:
                return found(*args, **kwargs)
            finally:
                _restore_torch()

        return restoring


def _restore_torch() -> None:
    """Restore the global settings of PyTorch, which a submission may have changed.

    The tests compute in the same process and rely on these settings.
    """
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)


def _gradients(
    output: Any, arguments: Mapping[str, Any], cotangent: Tensor | None, wrt: Sequence[str]
) -> dict[str, Tensor | None]:
    if cotangent is None:
        return {}
    if not (isinstance(output, Tensor) and output.requires_grad):
        return dict.fromkeys(wrt)
    leaves = [arguments[name] for name in wrt]
    # This is the gradient of a scalar product. If `grad` got the cotangent as `grad_outputs`,
    # PyTorch would import sympy, which is slow.
    product = (output * cotangent.to(output.device)).sum()
    found = torch.autograd.grad(product, leaves, allow_unused=True)
    return {name: None if g is None else plain(g) for name, g in zip(wrt, found, strict=True)}
