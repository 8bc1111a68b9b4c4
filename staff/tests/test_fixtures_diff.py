"""What a new build would change: each kind of change is named, with its case and its size."""

import dataclasses
import shutil

import msgspec
import pytest
import torch
from safetensors.torch import save

from staff.fixtures import diff
from staff.fixtures.diff import differences
from staff.fixtures.draft import stored_files, write_files
from tests.harness.fixtures import FIXTURES, METADATA_KEY, SEALS, decode_fixture

FILE = "softmax.safetensors"


@dataclasses.dataclass
class Draft:
    """One fixture file, open to changes."""

    entry: object
    tensors: dict[str, torch.Tensor]

    def encoded(self) -> bytes:
        """The bytes of the file."""
        text = msgspec.json.encode(self.entry, order="sorted").decode()
        return save(self.tensors, metadata={METADATA_KEY: text})

    def case(self, index: int, **changes: object) -> None:
        """Change the entry of a case."""
        cases = list(self.entry.cases)
        cases[index] = msgspec.structs.replace(cases[index], **changes)
        self.entry = msgspec.structs.replace(self.entry, cases=tuple(cases))


@pytest.fixture
def draft():
    """The committed file, open to changes."""
    return Draft(*decode_fixture(FIXTURES / FILE, (FIXTURES / FILE).read_bytes()))


@pytest.fixture
def found(monkeypatch, tmp_path):
    """What is found where a new build gives the committed files with these changes."""
    folder = shutil.copytree(FIXTURES, tmp_path / "fixtures")

    def differ(changed: dict[str, bytes | None]) -> list[str]:
        new = dict(stored_files(FIXTURES)) | changed
        built = {name: content for name, content in new.items() if content is not None}
        monkeypatch.setattr(diff, "build_files", lambda _, sample: built)
        lines = list(differences(folder))
        write_files(built, folder)
        assert list(differences(folder)) == []
        return lines

    return differ


def answer_name(draft: Draft, index: int) -> str:
    """The name of the tensor that is a case's answer."""
    (answer,) = draft.entry.cases[index].answers
    return answer["name"]


def where(draft: Draft, index: int) -> str:
    """How a case is named."""
    case = draft.entry.cases[index]
    return f"{FILE}: {case.test}, {case.name}"


def test_nothing_changed(found):
    """Catches a difference where there is none."""
    assert found({}) == []


def test_an_answer_that_moves(found, draft):
    """Catches a change of the oracle that is reported without its size, or for another case."""
    name = answer_name(draft, 1)
    draft.tensors[name] = draft.tensors[name].clone()
    draft.tensors[name].view(-1)[-1] += 0.25
    draft.entry = msgspec.structs.replace(draft.entry, oracle="another")
    assert found({FILE: draft.encoded(), SEALS: b"x  y\n"}) == [
        f"{SEALS}: seals other bytes",
        f"{FILE}: another oracle",
        f"{where(draft, 1)}: answers change by up to 2.50e-01",
    ]


def test_an_answer_of_another_shape(found, draft):
    """Catches a subtraction of tensors that don't match."""
    name = answer_name(draft, 0)
    draft.tensors[name] = draft.tensors[name][None]
    assert found({FILE: draft.encoded()}) == [f"{where(draft, 0)}: an answer of another shape"]


@pytest.mark.parametrize("change", [lambda x: x + 1, lambda x: x.double(), lambda x: x[None]])
def test_inputs_that_change(found, draft, change):
    """Catches an input that is redrawn, or of another dtype or shape, and isn't reported."""
    case = draft.entry.cases[0]
    name = f"{case.test}/{case.name}.in_features"
    draft.tensors[name] = change(draft.tensors[name])
    assert found({FILE: draft.encoded()}) == [f"{where(draft, 0)}: other inputs"]


def test_arguments_that_change(found, draft):
    """Catches a changed number among the arguments, which no tensor shows."""
    arguments = msgspec.json.decode(msgspec.json.encode(draft.entry.cases[0].arguments))
    arguments["items"].append(["extra", 1])
    draft.case(0, arguments=arguments)
    assert found({FILE: draft.encoded()}) == [f"{where(draft, 0)}: other inputs"]


def test_a_case_whose_name_begins_like_another(found, draft):
    """Catches a change that is put down to a case with a shorter name as well."""
    first = draft.entry.cases[0]
    longer = msgspec.structs.replace(
        first, name=f"{first.name} and more", answers=({"$": "tensor", "name": "more"},)
    )
    draft.tensors["more"] = draft.tensors[answer_name(draft, 0)].clone()
    draft.tensors[f"{first.test}/{longer.name}.in_features"] = torch.ones(1)
    cases = (*draft.entry.cases, longer)
    draft.entry = msgspec.structs.replace(draft.entry, cases=cases)
    assert found({FILE: draft.encoded()}) == [f"{where(draft, -1)}: new"]


def test_limits_and_mistakes_that_change(found, draft):
    """Catches a limit that grows without anybody noticing."""
    old = draft.entry.cases[0].limit
    draft.case(0, limit=old * 5)
    draft.case(1, mistakes=msgspec.Raw(b'{"x":{}}'))
    draft.entry = msgspec.structs.replace(draft.entry, mistakes=msgspec.Raw(b'["x"]'))
    assert found({FILE: draft.encoded()}) == [
        f"{FILE}: other known mistakes",
        f"{where(draft, 0)}: limit {old:g}, would be {old * 5:g}",
        f"{where(draft, 1)}: known mistakes look otherwise",
    ]


def test_a_case_that_goes(found, draft):
    """Catches a case that is dropped in silence."""
    gone = where(draft, 0)
    draft.entry = msgspec.structs.replace(draft.entry, cases=draft.entry.cases[1:])
    assert found({FILE: draft.encoded()}) == [f"{gone}: gone"]


def test_files_that_come_and_go(found):
    """Catches a task that loses its file, or a file that nothing reads any more."""
    assert found({FILE: None, "new.safetensors": b"x"}) == [
        "new.safetensors: missing",
        f"{FILE}: no task has it any more",
    ]


def test_a_damaged_file(found, monkeypatch, tmp_path):
    """Catches a traceback where the old file can't be read."""
    assert found({}) == []
    (tmp_path / "fixtures" / FILE).write_bytes(b"damaged")
    assert list(differences(tmp_path / "fixtures")) == [f"{FILE}: damaged"]
