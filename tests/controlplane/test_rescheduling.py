"""The rescheduler in a control plane, configured by a ConfigMap."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.controlplane.component_names import RESCHEDULER_CONFIG_MAP
from podium.testing import ControlPlane as Cluster
from tests.controllers.rescheduling.policies import BAD, PLACE
from tests.controlplane.test_control_plane import deployment
from tests.store.objects import node

NAMESPACE, _, NAME = RESCHEDULER_CONFIG_MAP.partition("/")
EAGER = {
    "aggressiveness": "Bold",
    "policies": [{"name": PLACE}],
    "scope": {"minimumAge": "30s"},
    "interval": "10s",
    "limits": {"inFlight": {"owner": 1}},
}
KIND = {"apiVersion": "podium.dev/v1alpha1", "kind": "ReschedulerConfiguration"}
HEAD = "apiVersion: podium.dev/v1alpha1\nkind: ReschedulerConfiguration\n"


def cluster(rescheduler: Raw = EAGER) -> Cluster:
    """All pods run on the bad node, and there is a good one."""
    found = Cluster(objects=[node(BAD)], rescheduler=rescheduler)
    found.apply(deployment())
    found.apply(node("good"))
    return found


def config_map(**data: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {name.replace("_", "."): text for name, text in data.items()},
    }


def on_bad(found: Cluster) -> int:
    return sum(raw["spec"]["nodeName"] == BAD for raw in found.pods() if "deletionTimestamp" not in raw["metadata"])


def events(found: Cluster, *reasons: str) -> list[Any]:
    return [raw for raw in found.objects("Event") if raw["reason"] in reasons]


def test_pods_are_moved_and_events_say_why() -> None:
    with cluster() as found:
        found.advance("2m")

        assert on_bad(found) == 0
        report = events(found, "Descheduled")
        assert len(report) == 3
        assert {raw["involvedObject"]["kind"] for raw in report} == {"Pod"}
        assert report[0]["message"] == "moved off bad by LeaveBad: bad is a bad node; there is room on good"


def test_a_config_map_pauses_and_resumes_all_evictions() -> None:
    with cluster() as found:
        found.run_until(lambda: on_bad(found) == 2)
        found.apply(config_map(paused="true"))
        (report,) = events(found, "ConfigurationRead")
        found.advance("2h")
        assert on_bad(found) == 2
        assert report["message"] == "all evictions are stopped"

        found.apply(config_map(paused="false"))
        found.advance("2m")
        assert on_bad(found) == 0


def test_a_broken_version_is_refused_in_words_and_the_one_before_stays() -> None:
    with cluster() as found:
        found.apply(config_map(config_yaml=HEAD + f"paused: true\npolicies: [{{name: '{PLACE}'}}]"))
        found.advance("10m")
        assert on_bad(found) == 3

        found.apply(config_map(config_yaml=HEAD + "pausedd: true"))
        found.advance("10m")
        assert on_bad(found) == 3
        (report,) = events(found, "ConfigurationRefused")
        assert report["type"] == "Warning"
        assert report["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": report["involvedObject"]["uid"],
        }
        assert "config.yaml" in report["message"]
        assert "pausedd" in report["message"]
        assert report["message"].endswith("; the configuration before it stays")


def test_an_invalid_first_configuration_stops_rescheduling_until_it_is_fixed() -> None:
    with cluster() as found:
        found.apply(config_map(config_yaml="{"))
        found.advance("10m")
        assert on_bad(found) == 3

        found.apply(config_map(config_yaml=json.dumps({**KIND, **EAGER})))
        found.advance("10m")
        assert on_bad(found) == 0


def test_a_config_map_that_is_deleted_takes_nothing_with_it() -> None:
    with cluster() as found:
        found.apply(config_map(paused="yes"))
        found.delete("ConfigMap", NAME, namespace=NAMESPACE)
        found.advance("10m")

        assert on_bad(found) == 3


@pytest.mark.parametrize("name", ["tests.controllers.rescheduling.policies:Other", "os:system", "NoSuchPolicy"])
def test_a_config_map_brings_no_code_along(name: str) -> None:
    with cluster() as found:
        found.apply(config_map(config_yaml=HEAD + f"policies: [{{name: '{name}'}}]"))
        found.advance("1m")

        (report,) = events(found, "ConfigurationRefused")
        assert name in report["message"]


def test_other_config_maps_say_nothing() -> None:
    with cluster() as found:
        other = config_map(paused="true")
        other["metadata"]["namespace"] = "default"
        found.apply(other)
        found.advance("2m")

        assert on_bad(found) == 0


def test_configuration_errors_are_reported_at_startup() -> None:
    with pytest.raises(InputError, match="NoSuch"):
        cluster({"policies": [{"name": "NoSuch"}]})
