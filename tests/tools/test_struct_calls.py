"""The mypy plugin that tells dataclasses from structs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mypy.api import run

_CODE = """
import dataclasses, msgspec
from dataclasses import dataclass, replace

@dataclass
class Data:
    a: int = 0

class Struct(msgspec.Struct):
    a: int = 0

replace(Data(), a=1)
msgspec.structs.replace(Struct(), a=1)
replace(Struct(), a=1)
dataclasses.asdict(Struct())
msgspec.structs.replace(Data(), a=1)
"""


def test_functions_of_dataclasses_take_no_structs_and_the_other_way_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # mypy raises it for good, and other tests share this process.
    monkeypatch.setattr(sys, "setrecursionlimit", lambda limit: None)
    plugin = Path(__file__).parents[2] / "tools" / "struct_calls.py"
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\nplugins = {plugin}\ncache_dir = {tmp_path}\nfollow_imports = silent\n")
    out, _, _ = run(["--config-file", str(config), "-c", _CODE])
    reported = [line.split(" error: ")[1] for line in out.splitlines() if " error: " in line]
    assert [line.partition("  ")[0] for line in reported if "does not take" in line] == [
        "dataclasses.replace does not take a struct",
        "dataclasses.asdict does not take a struct",
        "msgspec.structs.replace does not take a dataclass",
    ], out
