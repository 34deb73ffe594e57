"""What is filled in that clients leave open."""

from __future__ import annotations

from typing import Any

import pytest

from tests.requests.asking import API
from tests.store.objects import Raw


def created(kind: str, api_version: str, api: API | None = None, name: str = "x", **fields: Any) -> Raw:
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "creationTimestamp": None}, **fields}
    response = (api or API()).ask("create", kind, namespace="default", body=raw, field_validation="Strict")
    assert response.code == 201, response.to_dict()
    return response.to_dict()


SELECTED: Raw = {"selector": {"matchLabels": {"app": "x"}}}
TEMPLATE: Raw = {
    "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
}


def test_a_deployment_has_replicas_and_a_strategy() -> None:
    raw = created("Deployment", "apps/v1", spec={**SELECTED, **TEMPLATE, "strategy": {}}, status={})

    assert raw["spec"]["replicas"] == 1
    assert raw["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}


def test_a_strategy_that_does_not_roll_has_nothing_more() -> None:
    raw = created("Deployment", "apps/v1", spec={**SELECTED, **TEMPLATE, "strategy": {"type": "Recreate"}})

    assert raw["spec"]["strategy"] == {"type": "Recreate"}


def test_text_in_a_secret_becomes_data() -> None:
    raw = created("Secret", "v1", data={"a": "MQ=="}, stringData={"b": "2"})

    assert raw["data"] == {"a": "MQ==", "b": "Mg=="}
    assert (raw["type"], "stringData" in raw) == ("Opaque", False)


def test_services_have_addresses_and_ports_of_their_own_and_keep_them() -> None:
    api = API()
    spec = {"type": "NodePort", "ports": [{"port": 80}], "selector": {"app": "x"}}
    first, second = (created("Service", "v1", api, name, spec=spec) for name in ("a", "b"))

    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert first["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30_000}]
    assert second["spec"]["ports"][0]["nodePort"] == 30_001
    again = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}
    updated = api.ask("update", "Service", "default/a", body=again).to_dict()
    assert updated["spec"] == first["spec"]


def test_nulls_stand_for_nothing() -> None:
    raw = created("ConfigMap", "v1", data=None, immutable=None)

    assert "data" not in raw


@pytest.mark.parametrize(
    ("fields", "place"), [({"data": {"a": 1}}, "data.a"), ({"data": []}, "data"), ({"immutable": "yes"}, "immutable")]
)
def test_what_does_not_belong_in_a_field_is_refused(fields: Raw, place: str) -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, **fields}

    response = API().ask("create", "ConfigMap", namespace="default", body=raw, field_validation="Warn")

    assert response.code == 400
    assert place in response.to_dict()["message"]


def test_tokens_of_projected_volumes_last_an_hour_unless_they_say_how_long() -> None:
    sources = [
        {"serviceAccountToken": {"path": "a"}},
        {"serviceAccountToken": {"path": "b", "expirationSeconds": 600}},
        {"configMap": {"name": "c"}},
    ]
    volumes = [{"name": "v", "projected": {"sources": sources}}, {"name": "w", "emptyDir": {}}]
    spec = {**TEMPLATE["template"]["spec"], "volumes": volumes}
    template = {"template": {**TEMPLATE["template"], "spec": spec}}
    pod = created("Pod", "v1", spec=spec)["spec"]
    deployment = created("Deployment", "apps/v1", spec={**SELECTED, **template})["spec"]["template"]["spec"]

    for found in (pod, deployment):
        told = found["volumes"][0]["projected"]["sources"]
        assert [source.get("serviceAccountToken", {}).get("expirationSeconds") for source in told] == [3_600, 600, None]


def test_ports_of_endpoint_slices_have_names() -> None:
    raw = created("EndpointSlice", "discovery.k8s.io/v1", addressType="IPv4", endpoints=[], ports=[{"port": 80}])

    assert raw["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
