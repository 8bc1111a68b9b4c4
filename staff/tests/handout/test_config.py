"""The handout's tables of configuration fields, compared with `TrainingConfig`."""

import re
import tomllib

import msgspec

from cs336_basics.accounting import count_flops
from cs336_basics.config import TrainingConfig, make_config
from staff.tests.handout.text import MARKDOWN, printed

WORDS = {"none": None, "true": True, "false": False, "required": msgspec.NODEFAULT}


def described() -> dict[str, object]:
    """Return every field in the handout's two tables, with its printed default."""
    fields: dict[str, object] = {}
    _, *tables = MARKDOWN.split("| field | default | meaning |\n|---|---|---|\n")
    assert len(tables) == 2
    for row in (row for table in tables for row in table.split("\n\n")[0].splitlines()):
        names = re.findall(r"`(\w+)`", row.split("|")[1])
        texts = [text.strip().strip('`"') for text in row.split("|")[2].split(", ")]
        texts = texts * len(names) if len(texts) == 1 else texts
        fields |= dict(zip(names, map(value, texts), strict=True))
    return fields


def value(text: str) -> object:
    """Convert a printed default to a Python value."""
    if text in WORDS:
        return WORDS[text]
    return float(text) if re.fullmatch(r"[-+.\de]+", text) else text


def test_fields_and_defaults() -> None:
    """Catches a field that the handout omits, or prints with a wrong default."""
    fields = msgspec.structs.fields(TrainingConfig)
    assert described() == {field.name: field.default for field in fields}


def test_configuration_of_the_experiments() -> None:
    """Catches an invalid example of a configuration in the handout, or a wrong cost for it."""
    (text,) = re.findall(r"```toml\n(.*?)```", MARKDOWN, re.DOTALL)
    config = make_config(tomllib.loads(text))
    forward = count_flops(
        config.vocab_size,
        config.context_length,
        config.d_model,
        config.num_layers,
        config.num_heads,
        config.d_ff,
        config.batch_size,
        config.context_length,
    )
    mantissa, exponent = f"{3 * forward:.1e}".split("e+")
    printed(rf"about ${mantissa} \cdot 10^{{{int(exponent)}}}$ floating-point")
