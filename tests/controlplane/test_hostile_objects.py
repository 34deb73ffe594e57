"""Hostile objects stop neither a component nor the API server."""

import copy
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest

from podium.api.node import MAINTENANCE_TIME
from podium.apirequests.request import Request
from podium.controllers.kubelets.pod_run import DURATION, READERS, TROUBLE
from podium.store.errors import StoreError
from podium.testing import ControlPlane
from tests.app.manifests import manifests
from tests.fuzzing import FUZZ_RUNS, FUZZ_SEED
from tests.store.objects import Raw, pod

OBJECTS = [raw for raw in manifests() if raw.get("kind") != "Scenario"]
VALUES: list[Any] = [
    *(None, 0, -1, 2**63, 1.5, True, "", "x", "never", "10", "-5", "1e999", "Unknown", "node-1"),
    *("2026-13-01T00:00:00Z", "9999-01-01T00:00:00Z", [], {}, [{}], ["x"], {"a": "b"}, [{"name": "x"}]),
]
TEXTS = [value for value in VALUES if isinstance(value, str)]
ANNOTATIONS = [
    *(*READERS, MAINTENANCE_TIME, TROUBLE),
    *("podium.dev/power", "podium.dev/delete", "deployment.kubernetes.io/revision"),
]


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*at, key)
        yield from paths(part, (*at, key))


def mutated(drawn: random.Random, raw: Raw) -> Raw:
    """Return the object with other values in up to two places, and perhaps an annotation."""
    changed = copy.deepcopy(raw)
    for _ in range(drawn.choice((0, 1, 1, 2))):
        *way, last = drawn.choice([path for path in paths(changed) if path[0] not in {"apiVersion", "kind"}])
        part: Any = changed
        for key in way:
            part = part[key]
        part[last] = copy.deepcopy(drawn.choice(VALUES))
    if drawn.random() < 0.3 and isinstance(changed.get("metadata"), dict):
        changed["metadata"]["annotations"] = {drawn.choice(ANNOTATIONS): drawn.choice(TEXTS)}
    return changed


def written(raw: Raw) -> Raw:
    """Return what of an object is a patch of another."""
    patch = {name: value for name, value in raw.items() if name not in {"apiVersion", "kind", "metadata"}}
    metadata = raw.get("metadata")
    if isinstance(metadata, dict):
        patch["metadata"] = {name: metadata[name] for name in ("labels", "annotations") if name in metadata}
    return patch


def play(drawn: random.Random) -> ControlPlane:
    with ControlPlane(nodes=2) as cluster:
        for _ in range(40):
            raw = mutated(drawn, drawn.choice(OBJECTS))
            try:
                kind = cluster.plane.resources.of(raw).name
            except StoreError:
                continue
            cluster.plane.answer(Request(verb="create", kind=kind, body=raw, field_validation="Warn"))
            for stored in cluster.plane.store.objects(kind)[:1]:
                for subresource in ("", "status"):
                    body = written(mutated(drawn, raw))
                    patch = Request(
                        verb="patch",
                        kind=kind,
                        key=stored.key,
                        body=body,
                        subresource=subresource,
                        field_validation="Warn",
                    )
                    cluster.plane.answer(patch)
            if drawn.random() < 0.3:
                cluster.advance(drawn.choice(("1s", "30s", "6m")))
        return cluster


def check(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "podium"):
        cluster = play(random.Random(seed))

    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == [], f"seed {seed}"
    assert set(cluster.plane.checks().values()) == {""}


@pytest.mark.parametrize("seed", range(3))
def test_no_component_stumbles_over_what_clients_write(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    check(seed, caplog)


@pytest.mark.fuzz
def test_no_component_stumbles_in_long_runs(caplog: pytest.LogCaptureFixture) -> None:
    for seed in range(FUZZ_SEED, FUZZ_SEED + FUZZ_RUNS):
        check(seed, caplog)


@pytest.mark.parametrize("name", READERS)
def test_an_unreadable_pod_annotation_is_reported_and_ignored(name: str) -> None:
    raw = pod("a", annotations={name: "nonsense"})
    with ControlPlane(nodes=1) as cluster:
        warnings = cluster.request(Request(verb="create", kind="Pod", body=raw)).warnings
        cluster.advance("1m")
        assert cluster.pods()[0]["status"]["phase"] == "Running"
        cluster.delete("Pod", "a")
        cluster.advance("1m")

        assert cluster.pods() == []
    [warning] = warnings
    assert warning.startswith(f"metadata.annotations[{name}]: ")


@pytest.mark.parametrize(
    ("kind", "path"), [("Deployment", "spec.template"), ("CronJob", "spec.jobTemplate.spec.template")]
)
def test_a_bad_template_annotation_warns_the_creator_of_the_workload(kind: str, path: str) -> None:
    spec = {"restartPolicy": "Always", "containers": [{"name": "main", "image": "web"}]}
    labels = {"app": "web"}
    metadata = {"labels": labels, "annotations": {DURATION: "nonsense"}}
    if kind == "CronJob":
        template = {"metadata": metadata, "spec": {**spec, "restartPolicy": "Never"}}
        body: Raw = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    else:
        body = {"selector": {"matchLabels": labels}, "template": {"metadata": metadata, "spec": spec}}
    version = "batch/v1" if kind == "CronJob" else "apps/v1"
    raw = {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": body}

    with ControlPlane() as cluster:
        [warning] = cluster.request(Request(verb="create", kind=kind, body=raw)).warnings

    assert warning.startswith(f"{path}.metadata.annotations[{DURATION}]: ")


@pytest.mark.parametrize("name", [MAINTENANCE_TIME, TROUBLE])
def test_an_unreadable_node_annotation_is_reported_and_ignored(name: str) -> None:
    patch = {"metadata": {"annotations": {name: "nonsense"}}}
    with ControlPlane(nodes=1) as cluster:
        cluster.apply(pod("a"))
        request = Request(verb="patch", kind="Node", key=cluster.objects("Node")[0]["metadata"]["name"], body=patch)
        [warning] = cluster.request(request).warnings
        cluster.advance("1m")

        assert cluster.pods()[0]["status"]["phase"] == "Running"
    assert warning.startswith(f"metadata.annotations[{name}]: ")


@pytest.mark.parametrize("status", ["x", {"conditions": "x"}, {"conditions": ["x"]}])
def test_an_invalid_status_is_rejected(status: Any) -> None:
    with ControlPlane() as cluster:
        request = Request(verb="patch", kind="Namespace", key="default", subresource="status", body={"status": status})

        assert cluster.plane.answer(request).code == 400
