"""Objects in every version in which they are served."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apirequests.request import Request
from podium.store.listing import ListOptions
from tests.apirequests.asking import API
from tests.store.objects import Raw

EVENTS = "events.k8s.io/v1"
EVENT: Raw = {
    "apiVersion": EVENTS,
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "default-scheduler",
    "reportingInstance": "here",
    "action": "Binding",
    "reason": "Scheduled",
    "regarding": {"kind": "Pod", "name": "a", "namespace": "default", "uid": "u"},
    "note": "it has a place",
    "type": "Normal",
}
AUTOSCALER: Raw = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 9,
        "targetCPUUtilizationPercentage": 70,
    },
}


def with_event() -> API:
    api = API()
    response = api.ask("create", "Event", namespace="default", body=EVENT, api_version=EVENTS)
    assert response.code == 201, response.to_dict()
    return api


class TestEvents:
    def test_both_groups_show_the_same_events_each_in_its_words(self) -> None:
        api = with_event()

        core = api.ask("get", "Event", "default/e").to_dict()
        events = api.ask("get", "Event", "default/e", api_version=EVENTS).to_dict()

        assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "it has a place", "a")
        assert core["reportingComponent"] == "default-scheduler"
        assert {name: events[name] for name in EVENT if name != "metadata"} == {
            name: value for name, value in EVENT.items() if name != "metadata"
        }

    def test_lists_and_watches_are_in_the_version_that_is_asked_for(self) -> None:
        api = with_event()
        options = ListOptions(field_selector="regarding.name=a,reportingController=default-scheduler")

        page = api.ask("list", "Event", api_version=EVENTS, options=options).to_dict()
        watch = api.ask("watch", "Event", api_version=EVENTS).watch
        assert watch is not None
        report = watch.pull()

        assert (page["apiVersion"], page["kind"], page["items"][0]["note"]) == (EVENTS, "EventList", "it has a place")
        assert [(notice.raw["apiVersion"], notice.raw["note"]) for notice in report] == [(EVENTS, "it has a place")]
        assert b'"note":"it has a place"' in report[0].encoded()
        assert watch.bookmark().raw["apiVersion"] == EVENTS

    def test_a_patch_is_one_of_the_version_that_it_is_sent_to(self) -> None:
        api = with_event()
        series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
        patch = {"series": series, "note": "it has a place"}

        answered = api.ask("patch", "Event", "default/e", api_version=EVENTS, patch_type="strategic", body=patch)

        assert answered.to_dict()["series"] == api.raw("Event", "default/e")["series"] == series
        assert "note" not in api.raw("Event", "default/e")

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"eventTime": None}, "eventTime: Required value"),
            ({"type": "Odd"}, 'type: Unsupported value: "Odd"'),
            ({"deprecatedCount": 2}, "deprecatedCount: Invalid value: 2"),
            (
                {"deprecatedSource": {"component": "x"}},
                'deprecatedSource.component: Invalid value: "x": needs to be unset',
            ),
            ({"deprecatedLastTimestamp": "2026-01-01T00:00:00Z"}, "needs to be unset"),
            (
                {"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}},
                "series.count: Invalid value: 1",
            ),
            ({"series": {"count": 2}}, "series.lastObservedTime: Required value"),
            ({"reportingController": ""}, "reportingController: Required value"),
            ({"reportingController": "a b"}, 'reportingController: Invalid value: "a b"'),
            ({"reportingInstance": None}, "reportingInstance: Required value"),
            ({"action": None}, "action: Required value"),
            ({"reason": None}, "reason: Required value"),
        ],
    )
    def test_new_events_of_the_newer_group_are_complete(self, change: Raw, problem: str) -> None:
        api = API()
        answered = api.ask("create", "Event", body={**EVENT, **change}, namespace="default", api_version=EVENTS)

        assert answered.code == 422
        assert problem in answered.to_dict()["message"]
        assert api.store.find("Event", "default/e") is None

    def test_what_an_event_reports_is_immutable_in_the_newer_group_alone(self) -> None:
        api = with_event()
        for field, value in (("note", "another"), ("type", "Warning"), ("reason", "Other")):
            newer = api.ask("patch", "Event", "default/e", api_version=EVENTS, body={field: value})
            assert (newer.code, newer.to_dict()["details"]["causes"][0]["field"]) == (422, field)
        assert api.raw("Event", "default/e")["message"] == "it has a place"

        assert api.ask("patch", "Event", "default/e", body={"message": "another", "count": 3}).code == 200
        # The older group may have written what a new Event may not have.
        relabeled = {"metadata": {"labels": {"a": "b"}}}
        assert api.ask("patch", "Event", "default/e", api_version=EVENTS, body=relabeled).code == 200

    def test_an_event_is_in_the_namespace_of_its_object(self) -> None:
        def code(namespace: str, **event: Any) -> int:
            metadata = {"name": "e", "namespace": namespace}
            raw = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": {}, **event}
            return API().ask("create", "Event", namespace=namespace, body=raw).code

        assert [code("default"), code("kube-system")] == [201, 422]
        system = {"involvedObject": {"namespace": "kube-system"}}
        assert [code("default", **system), code("kube-system", **system)] == [422, 201]
        time = {"eventTime": "2026-01-01T00:00:00.000000Z"}
        assert [code(namespace, **time) for namespace in ("default", "kube-system", "other")] == [201, 201, 422]
        assert code("default", **system, **time) == 201

    def test_converted_objects_are_cached(self) -> None:
        stored = with_event().store.get("Event", "default/e")

        assert stored.served_as(EVENTS) is stored.served_as(EVENTS)
        assert stored.served_as("v1") is stored


class TestAutoscalers:
    def created(self) -> API:
        api = API()
        response = api.ask(
            "create",
            "HorizontalPodAutoscaler",
            namespace="default",
            body=AUTOSCALER,
            api_version="autoscaling/v1",
            field_validation="Strict",
            field_manager="maker",
        )
        assert response.code == 201, response.to_dict()
        assert response.to_dict()["spec"]["targetCPUUtilizationPercentage"] == 70
        return api

    def test_a_share_of_cpu_is_a_metric_of_the_newer_version(self) -> None:
        raw = self.created().raw("HorizontalPodAutoscaler", "default/web")

        target = {"type": "Utilization", "averageUtilization": 70}
        assert raw["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        assert raw["spec"]["minReplicas"] == 1

    def test_fields_unknown_to_the_older_version_survive_its_updates(self) -> None:
        api = self.created()
        memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Value", "value": "1Gi"}}}
        change: Any = [{"op": "add", "path": "/spec/metrics/-", "value": memory}]
        kind, key = "HorizontalPodAutoscaler", "default/web"
        api.ask("patch", kind, key, patch_type="json", body=change)
        api.ask("patch", kind, key, body={"spec": {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}}})

        older = api.ask("get", kind, key, api_version="autoscaling/v1").to_dict()
        older["spec"]["maxReplicas"] = 12
        answered = api.ask("update", kind, key, body=older, api_version="autoscaling/v1")

        assert answered.code == 200, answered.to_dict()
        spec = api.raw(kind, key)["spec"]
        assert spec["maxReplicas"] == 12
        assert [metric["resource"]["name"] for metric in spec["metrics"]] == ["cpu", "memory"]
        assert spec["behavior"]["scaleUp"]["selectPolicy"] == "Disabled"
        assert "annotations" not in api.raw(kind, key)["metadata"]

    def test_managed_fields_have_the_names_of_their_version(self) -> None:
        api, kind, key = self.created(), "HorizontalPodAutoscaler", "default/web"

        for version in ("autoscaling/v1", "autoscaling/v2"):
            older = api.ask("get", kind, key, api_version=version).to_dict()
            [entry] = older["metadata"]["managedFields"]
            assert entry["apiVersion"] == "autoscaling/v1"
            names = ("maxReplicas", "minReplicas", "scaleTargetRef", "targetCPUUtilizationPercentage")
            assert entry["fieldsV1"] == {"f:spec": {f"f:{name}": {} for name in names}}

    def test_an_update_in_another_version_takes_the_fields_over(self) -> None:
        api, kind, key = self.created(), "HorizontalPodAutoscaler", "default/web"

        raw = api.ask("patch", kind, key, body={"spec": {"metrics": None}}, field_manager="changer").to_dict()

        found = {one["manager"]: one["fieldsV1"]["f:spec"] for one in raw["metadata"]["managedFields"]}
        assert not any("f:targetCPUUtilizationPercentage" in fields for fields in found.values())

    def test_the_older_version_counts_replicas(self) -> None:
        api, kind, key = self.created(), "HorizontalPodAutoscaler", "default/web"

        older = api.ask("get", kind, key, api_version="autoscaling/v1").to_dict()

        assert older["status"] == {"currentReplicas": 0, "desiredReplicas": 0}


@pytest.mark.parametrize("version", ["autoscaling/v2", "v1"])
def test_an_object_of_another_version_than_the_path_is_refused(version: str) -> None:
    body = {**AUTOSCALER, "apiVersion": version}
    request = Request(
        verb="create",
        kind="HorizontalPodAutoscaler",
        namespace="default",
        body=body,
        api_version="autoscaling/v1",
    )

    assert API().answer(request).code in (400, 404)
