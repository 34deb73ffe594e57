"""The table of versions: each behavior is asked at one place of the code, and nothing else compares versions."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import podium
from podium.api.versions.gates import Gate
from podium.api.versions.release import Behavior

SOURCES = Path(podium.__file__).parent
TABLE = SOURCES / "api" / "versions"
FILES = {file: file.read_text() for file in sorted(SOURCES.rglob("*.py")) if TABLE not in file.parents}
PROGRAMS = ("store", "controllers/scheduling", "controllers/kubelets", "controllers/workloads")
"""The API server, the scheduler, the kubelet and the controller manager: upstream each asks its own gates."""


def program_of(file: Path) -> str:
    place = file.relative_to(SOURCES).as_posix()
    return next((program for program in PROGRAMS if place.startswith(program)), place.partition("/")[0])


def test_each_behavior_is_asked_at_one_place() -> None:
    asked = Counter(name for text in FILES.values() for name in re.findall(r"\bBehavior\.([A-Z_]+)", text))

    assert asked == Counter(behavior.name for behavior in Behavior)


def test_each_gate_is_asked_by_a_program_at_most_once() -> None:
    asked = Counter(
        (program_of(file), name) for file, text in FILES.items() for name in re.findall(r"\bGate\.([A-Z_]+)", text)
    )

    assert {of: count for of, count in asked.items() if count > 1} == {}
    assert {name for _, name in asked} == {gate.name for gate in Gate}


def test_nothing_outside_of_the_table_compares_minor_versions() -> None:
    compares = re.compile(r"\brelease\.(minor|patch)\s*[<>=!]|[<>=]=?\s*release\.(minor|patch)\b")

    assert [str(file) for file, text in FILES.items() if compares.search(text)] == []
