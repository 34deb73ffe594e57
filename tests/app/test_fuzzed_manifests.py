"""Errors anywhere in a manifest are reported with their path, never as a traceback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import podium
from podium.api.errors import PodiumError, Validation
from podium.api.input.codec import Input
from podium.api.kinds import KINDS
from podium.app.explaining.explainer import Explainer
from podium.app.library import read_objects
from podium.sim.run_options import SimulationLimits
from tests.app.manifests import manifests, scenarios
from tests.fuzzing import Effort, efforts

Path = tuple[str | int, ...]
LIMITS = SimulationLimits(objects=300, events=3_000, calls=20_000)
# What people, programs and those who mean harm write where something else belongs.
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 0.5, 2**31, 2**63, 2**63 - 1, 10**12, 10**40, 1e300, -(2**31)),
    *("", "a", "-1", "1", "100%", "101%", "A b", "../a", "a\x00", "\x1b[31m", "é", "٣", "a" * 300, "{{ .Values.a }}"),
    *("1e9", "1e99", "1Gi", "-1Gi", "400m", "1 Gi", "NaN", "90s", "-5s", "2562047h", "99999999h", "5/1h", "1/0s"),
    *("0001-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30"),
    *([], [None], [5], ["a"], [[]], [{}], [{"a": 5}], {}, {"a": None}, {"a": 5}, {"a": {"b": []}}, {"name": "web"}),
)
MANIFESTS = manifests()
SCENARIOS = scenarios()


def paths_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where everything in a value is, the value itself first."""
    yield path
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in entries:
        yield from paths_of(one, (*path, key))


PATHS = [list(paths_of(one))[1:] for one in MANIFESTS]
SCENARIO_PATHS = [[path for path in paths_of(raws) if len(path) > 1] for raws in SCENARIOS]


@st.composite
def mutations(draw: st.DrawFn, paths: list[Path]) -> tuple[str, Path, Any]:
    """One thing to do to a value: put junk in a place, take away or double what is there, or give it another name."""
    path = draw(st.sampled_from(paths))
    deed = draw(st.sampled_from(("put", "put", "put", "remove", "double", "rename", "wrap")))
    return deed, path, draw(st.sampled_from(JUNK)) if deed == "put" else None


def mutated(value: Any, deeds: list[tuple[str, Path, Any]]) -> Any:
    """Return the value after all that; what is no longer there is left alone."""
    value = copy.deepcopy(value)
    for deed, (*way, last), junk in deeds:
        holder = value
        try:
            for key in way:
                holder = holder[key]
            _do(deed, holder, last, junk)
        except (KeyError, IndexError, TypeError, ValueError):
            continue
    return value


def _do(deed: str, holder: Any, key: str | int, junk: Any) -> None:
    match deed:
        case "put":
            holder[key] = copy.deepcopy(junk)
        case "remove":
            del holder[key]
        case "double" if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[int(key)]))
        case "wrap":
            holder[key] = [holder[key]]
        case "rename" if isinstance(holder, dict):
            holder[f"{key}s"] = holder.pop(str(key))
        case _:
            holder[key] = {"a": holder[key]}


WAITING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waits", "labels": {"app": "web"}},
    "spec": {
        "containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "3"}}}],
        "priority": 9,
        "tolerations": [{"operator": "Exists"}],
    },
}


def survived(objects: list[Any], validation: Validation | None) -> None:
    """Call the function; raise anything that is not an error for users."""
    try:
        found = read_objects(objects, validation)
    except PodiumError as error:
        check(error)
        return
    explain(found)
    try:
        result = podium.simulate(found.documents, until="20m", limits=LIMITS, validation=validation)
        assert result.to_dict()
    except PodiumError as error:
        check(error)


def explain(found: Input) -> None:
    try:
        explainer = Explainer(one.object for one in found.documents if one.object is not None)
        for pod in explainer.pending:
            assert explainer.explain(pod).to_dict()
    except PodiumError as error:
        check(error)


def check(error: PodiumError) -> None:
    """Check that an error is one line of bounded length without control characters."""
    assert str(error).isprintable()
    assert len(str(error)) < 3_000


VALIDATIONS = st.sampled_from(["strict", "warn", "ignore", None])


@efforts(30)
def test_a_manifest_with_anything_wrong_in_any_place_is_survived(effort: Effort) -> None:
    @effort
    @given(st.data(), VALIDATIONS)
    def check_survived(data: st.DataObject, validation: Validation | None) -> None:
        number = data.draw(st.integers(0, len(MANIFESTS) - 1))
        deeds = data.draw(st.lists(mutations(PATHS[number]), min_size=1, max_size=3))
        changed = mutated(MANIFESTS[number], deeds)

        survived([*MANIFESTS[:number], changed, *MANIFESTS[number + 1 :], WAITING], validation)

    check_survived()


@efforts(12)
def test_a_scenario_with_anything_wrong_in_any_place_is_survived(effort: Effort) -> None:
    @effort
    @given(st.data(), VALIDATIONS)
    def check_survived(data: st.DataObject, validation: Validation | None) -> None:
        number = data.draw(st.integers(0, len(SCENARIOS) - 1))
        deeds = data.draw(st.lists(mutations(SCENARIO_PATHS[number]), min_size=1, max_size=3))

        survived(mutated(SCENARIOS[number], deeds), validation)

    check_survived()


def test_the_fuzzed_manifests_are_valid_before_mutation() -> None:
    assert read_objects([*MANIFESTS, WAITING], "strict").warnings == []
    assert podium.simulate([*MANIFESTS, WAITING], until="20m", limits=LIMITS).events


def test_every_kind_that_is_read_is_mutated() -> None:
    assert {one["kind"] for one in MANIFESTS} == {kind.name for kind in KINDS.values()}
