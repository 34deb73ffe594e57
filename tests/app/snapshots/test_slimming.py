"""The fields that a snapshot omits, and the fields that it keeps."""

from __future__ import annotations

import importlib
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.apirequests.request import (
    AVOID_FOR,
    AVOID_NODE,
    AVOID_UNTIL_REPLACED,
    AVOID_UNTIL_SCHEDULED,
    COMPONENT,
    REPLACEMENT_AWAITED,
    REPLACEMENT_FIRST,
    REPLACEMENT_NODE,
)
from podium.app.snapshots.cluster import (
    LEFT_OUT_ANNOTATION,
    LEFT_OUT_VARIABLE,
    PARTS,
    Slimmer,
    is_read,
    left_out_beside,
)
from tests.app.manifests import manifests

Raw = dict[str, Any]
SOURCES = Path(__file__).parents[3] / "src"
# How annotations are read: by a name in capitals, or text.
READ = re.compile(
    r"""annotations(?:\.get\(|\[|"\]\[)(?P<name>(?:[a-z_]+\.)?[A-Z][A-Z_]+|"[^"]+")"""
    r"""|(?P<other>\b(?:[a-z_]+\.)?_?[A-Z][A-Z_]+) (?:not )?in [\w.]*annotations"""
)
SECRET = "hunter2"
CONTAINER: Raw = {
    "name": "main",
    "image": "web",
    "command": ["run", SECRET],
    "args": [SECRET],
    "env": [{"name": "PASSWORD", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    "readinessProbe": {"httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "A", "value": SECRET}]}},
    "resources": {"requests": {"cpu": "1"}},
    "ports": [{"containerPort": 80, "hostPort": 80}],
}
MEANT = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "podium.dev/duration": "5s"}
METADATA: Raw = {"name": "web", "annotations": MEANT, "managedFields": [{"manager": SECRET}]}
POD_SPEC: Raw = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "ephemeralContainers": [CONTAINER],
    "nodeSelector": {"a": "b"},
}
TEMPLATE: Raw = {"metadata": METADATA, "spec": POD_SPEC}
ENDED: Raw = {"terminated": {"exitCode": 1, "message": SECRET}}
SECRETIVE: list[Raw] = [
    {
        "kind": "Pod",
        "spec": POD_SPEC,
        "status": {"containerStatuses": [{"name": "main", "state": ENDED, "lastState": ENDED}]},
    },
    *({"kind": kind, "spec": {"template": TEMPLATE}} for kind in ("Deployment", "DaemonSet", "Job", "ReplicaSet")),
    {"kind": "ReplicationController", "spec": {"template": TEMPLATE}},
    {"kind": "StatefulSet", "spec": {"template": TEMPLATE}},
    {"kind": "CronJob", "spec": {"jobTemplate": {"metadata": METADATA, "spec": {"template": TEMPLATE}}}},
    {"kind": "ControllerRevision", "data": {"spec": {"template": TEMPLATE}}},
    {"kind": "Scenario", "spec": {"steps": [{"at": "1s", "apply": [{"kind": "Pod", "spec": POD_SPEC}]}]}},
]


def text_of(raw: Raw) -> str:
    return msgspec.json.encode(raw).decode()


def template(container: Raw, annotations: dict[str, str] | None = None) -> Raw:
    spec = {"containers": [{"name": "main", "image": "web", **container}]}
    return {"kind": "ReplicaSet", "spec": {"template": {"metadata": {"annotations": annotations or {}}, "spec": spec}}}


@pytest.mark.parametrize("raw", SECRETIVE, ids=lambda raw: raw["kind"])
def test_nothing_that_may_be_secret_is_left_wherever_pods_are_written(raw: Raw) -> None:
    raw = {"apiVersion": "v1", "metadata": METADATA, **raw}
    before = text_of(raw)

    slim = Slimmer().slim(raw)

    assert SECRET not in text_of(slim)
    assert '"cpu":"1"' in text_of(slim)
    assert slim["metadata"]["annotations"] == {"podium.dev/duration": "5s"}
    assert text_of(raw) == before


def test_requested_fields_survive_slimming() -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": POD_SPEC}

    assert Slimmer(("annotations", "env", "managed-fields")).slim(raw) == raw
    assert "managedFields" not in Slimmer(("annotations", "env")).slim(raw)["metadata"]
    assert left_out_beside(("annotations", "env", "managed-fields", "secrets")) == ()
    assert left_out_beside(()) == tuple(PARTS.values())


def test_templates_that_differ_in_what_is_left_out_stay_different_and_equal_ones_equal() -> None:
    slimmer = Slimmer()
    first, second, third = (
        slimmer.slim(template({"env": [{"name": "VERSION", "value": value}]})) for value in ("1", "2", "1")
    )

    assert first == third != second
    assert first["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": LEFT_OUT_VARIABLE, "value": "1"}]


def test_a_restart_by_an_annotation_of_the_template_stays_one() -> None:
    slimmer = Slimmer()
    before, after = (
        slimmer.slim(template({}, {"kubectl.kubernetes.io/restartedAt": time, "podium.dev/duration": "5s"}))
        for time in ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    )

    assert before != after
    annotations = after["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"podium.dev/duration": "5s", LEFT_OUT_ANNOTATION: "2"}


@pytest.mark.parametrize("raw", manifests(), ids=lambda raw: raw["kind"])
def test_slimming_keeps_all_other_fields(raw: Raw) -> None:
    slim = Slimmer().slim(raw)

    assert set(slim) == set(raw)
    assert slim["metadata"] | {"annotations": {}} == raw["metadata"] | {"annotations": {}}


@pytest.mark.parametrize("odd", [None, 1, "a", [1], {"containers": 1}, {"containers": [1]}, {"template": []}])
def test_an_object_in_which_things_are_not_what_they_should_be_passes(odd: Any) -> None:
    for kind in ("Pod", "Deployment", "CronJob", "ControllerRevision", "Scenario"):
        Slimmer().slim({"kind": kind, "metadata": odd, "spec": odd, "status": odd, "data": odd})


def test_every_annotation_that_is_read_is_on_the_list() -> None:
    read: set[str] = set()
    for file in sorted((SOURCES / "podium").rglob("*.py")):
        text = file.read_text()
        names = {match["name"] or match["other"] for match in READ.finditer(text)}
        names |= set(re.findall(r"annotations\.get\((_[A-Z_]+)", text))
        if names:
            module = importlib.import_module(".".join(file.relative_to(SOURCES).with_suffix("").parts))
            read |= {name.strip('"') if name.startswith('"') else attrgetter(name)(module) for name in names}

    # Evictions, deletions, definitions, bookmarks and applies have annotations of their own, which no snapshot holds.
    of_evictions = {"podium.dev/delete", COMPONENT, AVOID_NODE, AVOID_FOR, AVOID_UNTIL_SCHEDULED}
    of_evictions |= {AVOID_UNTIL_REPLACED, REPLACEMENT_AWAITED, REPLACEMENT_FIRST, REPLACEMENT_NODE}
    assert len(read) > 15
    of_others = {
        "api-approved.kubernetes.io",
        "k8s.io/initial-events-end",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
    assert not [name for name in read - of_evictions - of_others if not is_read(name)]
