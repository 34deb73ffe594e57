"""Structs with an equality of their own, of which msgspec's inequality knows nothing."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import msgspec

SOURCES = Path(__file__).parents[2] / "src"


def test_structs_that_define_equality_define_inequality_too() -> None:
    structs: list[type[msgspec.Struct]] = []
    for file in sorted((SOURCES / "podium").rglob("*.py")):
        text = file.read_text()
        if "def __eq__" in text:
            module = importlib.import_module(".".join(file.relative_to(SOURCES).with_suffix("").parts))
            named = [getattr(module, name) for name in re.findall(r"^class (\w+)", text, re.MULTILINE)]
            structs += [each for each in named if issubclass(each, msgspec.Struct) and "__eq__" in vars(each)]

    assert structs
    assert [each.__name__ for each in structs if vars(each).get("__ne__") is not object.__ne__] == []
