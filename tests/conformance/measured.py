"""The measured decisions of kube-scheduler 1.31 to 1.36, and their comparison with Podium's.

A set is a file of clusters with a pending pod each, some with a configuration (``cases*.jsonl.xz``,
``dra-cases.jsonl.xz``), and a file of what kube-scheduler v1.36.2 decided for that pod (``expected*.jsonl.xz``,
``dra-expected.jsonl.xz``), with its own cache, queue and event handlers, default feature gates, all nodes scored and
examined. ``versions.jsonl.xz`` has what other versions decided differently: the keys of a line replace those of
v1.36.2, null removes one. Keys that came out differently from run to run are ``unstable`` and not compared.
``extra-cases.jsonl.xz`` are further clusters that show the differences, ``extra-expected.jsonl.xz`` what each version
decided, and ``messages.jsonl.xz`` the FailedScheduling messages of all sets but those with claims.

`python -m tests.conformance.measured` prints how many decisions of each version agree.
"""

from __future__ import annotations

import lzma
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from podium.api.errors import PodiumError
from podium.api.meta import Kubernetes
from podium.api.objects import read_object
from podium.api.versions.release import DEFAULT_RELEASE, Release, read_version
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.controllers.scheduling.pod_reports import fit_error
from podium.decide.placement import place
from podium.decide.post_filter import ask_post_filters
from podium.framework.settings.configuration import read_configuration

HERE = Path(__file__).parent
FIELDS = ("pod", "preEnqueue", "preFilter", "nodes", "scores", "totals", "best", "preemption")
"""What was measured of every decision; a field that is not there was not decided. Podium says more."""

VERSIONS = ("1.31.14", "1.32.13", "1.33.13", "1.34.9", "1.35.6", "1.36.2")
DEVICES = "dra-cases"
"""The set about dynamic resources, which was measured from 1.34 on."""

EXTRA = "extra"
SETS = ("cases", "cases-2", DEVICES, EXTRA)
_ANSWERS = {"cases": "expected", "cases-2": "expected-2", DEVICES: "dra-expected"}
_BEYOND = ("outcome", "node", "caveats")
_FEW = 30
_SHARE_OF_MANY = 3
FAILED = "a filter failed"
"""The cases' mark for an error, whatever its message."""

FIRST_WITH_SORTED_SLICES = 36
"""Earlier minor versions search the slices of a pool in the order of a Go map, which is random."""

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster with a pending pod (``pod`` is its key), and what kube-scheduler of a version decided about it."""

    name: str
    theme: str
    objects: list[Raw]
    pod: str
    expected: Raw
    config: Raw = field(default_factory=dict)
    release: Release = DEFAULT_RELEASE
    unstable: tuple[str, ...] = ()


@cache
def lines(name: str) -> list[Raw]:
    """Return the lines of a file, which is read once."""
    with lzma.open(HERE / f"{name}.jsonl.xz") as found:
        return [msgspec.json.decode(line, type=Raw) for line in found]


@cache
def all_cases(set_: str, version: str = VERSIONS[-1]) -> list[Case]:
    """Return the cases of a set, with what a version decided."""
    release = read_version(version)
    if set_ == EXTRA:
        decided = {line["name"]: line for line in lines("extra-expected") if version in line["versions"]}
        return [_case(case, _without(decided[case["name"]], "versions"), release) for case in lines("extra-cases")]
    found, differences = [], _differences(version)
    for case, newest in zip(lines(set_), lines(_ANSWERS[set_]), strict=True):
        if newest["name"] != case["name"]:
            raise AssertionError(f"the answer to {case['name']} is not in its line")
        other = differences.get((set_, case["name"]), {})
        expected = {key: value for key, value in (newest | other.get("expected", {})).items() if value is not None}
        found.append(replace(_case(case, expected, release), unstable=tuple(other.get("unstable", ()))))
    return found


def sets_of(version: str) -> tuple[str, ...]:
    """Return the sets that were measured of a version."""
    return SETS if read_version(version).minor >= 34 else tuple(set_ for set_ in SETS if set_ != DEVICES)


@cache
def in_turn(set_: str) -> dict[str, list[Case]]:
    """Return, by version, enough cases of a set to judge every change between versions.

    Cases are alike if their answers change between the same versions. Few alike cases are judged by every version; of
    many, each third is judged by one version, in turn. The newest version judges the extra cases alone: all else that
    it decided is in `test_conformance` and `test_dynamic_resources`.
    """
    versions = [version for version in VERSIONS if set_ in sets_of(version)]
    alike: defaultdict[tuple[int, ...], list[tuple[Case, ...]]] = defaultdict(list)
    for case in zip(*(all_cases(set_, version) for version in versions), strict=True):
        answers = [
            (one.expected, one.unstable, messages(version).get((set_, one.name)))
            for version, one in zip(versions, case, strict=True)
        ]
        alike[tuple(map(answers.index, answers))].append(case)
    judges = versions if set_ == EXTRA else versions[:-1]
    judged: dict[str, list[Case]] = {version: [] for version in judges}
    for cases in alike.values():
        are_few = len(cases) < _FEW
        for turn, case in enumerate(cases if are_few else cases[::_SHARE_OF_MANY]):
            for judge in range(len(judges)) if are_few else [turn % len(judges)]:
                judged[judges[judge]].append(case[judge])
    return judged


@cache
def in_turn_by_name(set_: str) -> dict[str, list[tuple[str, Case]]]:
    """Return, by the name of a case, the versions that judge it in turn, each with the case as it decided it."""
    found: defaultdict[str, list[tuple[str, Case]]] = defaultdict(list)
    for version, cases in in_turn(set_).items():
        for case in cases:
            found[case.name].append((version, case))
    return found


@cache
def _differences(version: str) -> dict[tuple[str, str], Raw]:
    return {(line["set"], line["name"]): line for line in lines("versions") if version in line["versions"]}


@cache
def messages(version: str) -> dict[tuple[str, str], str]:
    """Return the messages of FailedScheduling events of a version, by set and case; only extra cases are in their
    answers.
    """
    return {(line["set"], line["name"]): line["message"] for line in lines("messages") if version in line["versions"]}


def _case(case: Raw, expected: Raw, release: Release) -> Case:
    kept = _without(case, "shows", "since")
    return Case(**kept, expected=_without(expected, "name"), release=release)


def _without(raw: Raw, *keys: str) -> Raw:
    return {key: value for key, value in raw.items() if key not in keys}


def decoded(case: Case) -> list[Kubernetes]:
    """Return the objects of a case, which are the same for all versions. Nothing is said about their faults."""
    found = (read_object(raw, "ignore").object for raw in case.objects)
    return [one for one in found if one is not None]


def explained(case: Case, objects: Sequence[Kubernetes] = ()) -> Explanation:
    """Return what Podium decides; ``objects`` are those of the case, if they are already decoded."""
    configuration = read_configuration(case.config, case.name) if case.config else None
    return Explainer(objects or decoded(case), configuration, case.release).explain(case.pod)


def ranked_node(explanation: Explanation) -> str:
    """Return the node that the scheduler finds by what it keeps of the pod's class, once it keeps something."""
    runner = explanation.runner
    runner.rankings.is_eager, runner.rankings.retry_after = True, 0
    found = [place(runner, explanation.record, detailed=False).row for _ in range(3)][-1]
    return "" if found is None else runner.cluster.nodes.name(found)


def message_of(explanation: Explanation) -> str:
    """Return the message of the event about a pod that fits nowhere, "" if it fits or no attempt is made."""
    runner = explanation.runner
    if explanation.pre_enqueue is not None or explanation.error:
        return ""
    placement = place(runner, explanation.record)
    if placement.row is not None or placement.error:
        return ""
    result = ask_post_filters(runner, placement)
    return fit_error(placement, len(runner.cluster.nodes), result.status.message)


def other_message(case: Case, set_: str, version: str, explanation: Explanation) -> str:
    """Return how the message of the event differs from a version's; "" if it does not, or if none was measured."""
    known = messages(version).get((set_, case.name))
    found = known if known is None else message_of(explanation)
    return "" if found == known else f"{case.name}\n  kube-scheduler {known}\n  Podium         {found}"


def disagreement(case: Case, explanation: Explanation) -> str:
    """Return what differs from kube-scheduler's decision, field by field; "" where nothing does."""
    expected, found = _comparable(case.expected), _comparable(explanation.decision())
    if case.release.minor < FIRST_WITH_SORTED_SLICES:
        expected, found = _any_order(expected), _any_order(found)
    if "error" in found:
        found["error"] = FAILED
    if "message" in expected:
        found["message"] = message_of(explanation)
    further = expected.keys() | (found.keys() if case.theme.startswith("dra") else ())
    wrong = [
        f"  {name}: kube-scheduler {expected.get(name)}\n  {' ' * len(name)}  Podium {found.get(name)}"
        for name in (*FIELDS, *sorted(further - {*FIELDS, *_BEYOND}))
        if found.get(name) != expected.get(name) and name not in case.unstable
    ]
    return "\n".join([case.name, *wrong]) if wrong else ""


def _any_order(decision: Raw) -> Raw:
    """Return a decision without the order of a claim's devices."""
    claims = {
        node: {name: claim | {"devices": sorted(claim["devices"])} for name, claim in each.items()}
        for node, each in decision.get("claims", {}).items()
    }
    return decision | ({"claims": claims} if claims else {})


def may_take(case: Case, explanation: Explanation) -> tuple[str, list[str]]:
    """Return what the outcome must be, and the nodes of which kube-scheduler takes or nominates any."""
    expected = case.expected
    if "preEnqueue" in expected:
        return "gated", [""]
    if "error" in expected:
        return "error", [""]
    if "best" in expected:
        own = explanation.record.nominated_node_name
        return "schedulable", [own] if own in expected["totals"] else expected["best"]
    preemption = expected.get("preemption", {"eligible": True, "selected": []})
    if not preemption["eligible"]:
        return "not-eligible", [""]
    return "preempts" if preemption["selected"] else "unschedulable", preemption["selected"] or [""]


def _comparable(value: Any, name: str = "") -> Any:
    """Return a value without what is not decided: the order of reasons."""
    if name == "reasons":
        return sorted(value)
    return {key: _comparable(one, key) for key, one in value.items()} if isinstance(value, dict) else value


def judged(case: Case, set_: str, version: str, objects: Sequence[Kubernetes] = ()) -> Iterator[tuple[str, str]]:
    """Yield what was compared of a case, "decision" or "message", and what differs, "" where nothing does."""
    try:
        explanation = explained(case, objects)
        yield "decision", disagreement(case, explanation)
        if (set_, case.name) in messages(version):
            yield "message", other_message(case, set_, version, explanation)
    except PodiumError as error:
        # An upstream error about the configuration ends with what is wrong with it.
        reason = str(case.expected.get("error", "")).rpartition("scoringStrategy")[2]
        yield "decision", "" if reason and reason in str(error) else f"{case.name}: {error}"


def main(versions: list[str]) -> None:
    """Print how many decisions and messages agree, and what differs."""
    for version in versions or VERSIONS:
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for set_ in sets_of(version):
            for case in all_cases(set_, version):
                for what, wrong in judged(case, set_, version):
                    count = counts[set_ if what == "decision" else "messages"]
                    count[0] += not wrong
                    count[1] += 1
                    if wrong:
                        sys.stderr.write(f"{version} {set_} {wrong}\n")
        agree = ", ".join(f"{name} {agreeing} of {of}" for name, (agreeing, of) in counts.items())
        sys.stdout.write(f"{version}: {agree}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
