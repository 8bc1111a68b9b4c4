"""Import of names of a submission, which are written as `package.module:Name`."""

from __future__ import annotations

import importlib
from typing import Any

from tests.harness.bridge import Missing


def resolve(symbol: str) -> Any:
    """Import the object that `package.module:Name` names.

    Raises:
        Missing: the submission has no such module or name.
    """
    path, _, name = symbol.partition(":")
    try:
        found = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path == error.name or path.startswith(f"{error.name}.")):
            raise Missing(f"the submission has no {path.replace('.', '/')}.py") from error
        raise
    if not hasattr(found, name):
        raise Missing(f"{path.replace('.', '/')}.py has no {name}")
    return getattr(found, name)
