"""Podium's additions to Kubernetes, as API clients see them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apirequests.authorization import User
from podium.apirequests.context import DELETE_ANNOTATION, DIRECT, RequestRules, identity_of
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from tests.apirequests.asking import API, NOW
from tests.store.objects import Raw, budget, disruption_policy, priority_class, running

KEY = "default/a"
PERSON: dict[str, Any] = {"identity": User("alice"), "field_manager": "kubectl"}


def guarded(rules: RequestRules, *objects: Raw, allowed: int = 0, **pod: Any) -> API:
    """Return a pod under a budget that allows so many disruptions."""
    api = API(running("a", **pod), budget(allowed=allowed), *objects)
    api.router = Router(api.store, rules=rules)
    return api


def delete(api: API, body: Raw | None = None, verb: Any = "delete", **who: Any) -> Response:
    return api.answer(
        Request(verb=verb, kind="Pod", key=KEY if verb == "delete" else "", namespace="default", body=body, **who)
    )


EVICTING = RequestRules(deletes_by_eviction=True)


class TestDeletingByEviction:
    def test_plain_clients_find_kubernetes(self) -> None:
        assert delete(guarded(RequestRules()), **PERSON).code == 200

    @pytest.mark.parametrize("verb", ["delete", "deletecollection"])
    def test_a_pod_deletion_by_a_user_becomes_an_eviction(self, verb: Any) -> None:
        api = guarded(EVICTING)

        refused = delete(api, verb=verb, **PERSON)

        assert refused.code == 429
        assert refused.to_dict()["details"]["causes"][0]["reason"] == "DisruptionBudget"
        assert api.store.get("Pod", KEY).object.metadata.deletion_timestamp is None

    def test_a_budget_that_allows_it_is_debited(self) -> None:
        api = guarded(EVICTING, allowed=1)

        answered = delete(api, **PERSON)

        assert (answered.code, answered.to_dict()["kind"]) == (200, "Pod")
        assert api.raw("PodDisruptionBudget", "default/web")["status"]["disruptionsAllowed"] == 0
        (target,) = [one for one in api.raw("Pod", KEY)["status"]["conditions"] if one["type"] == "DisruptionTarget"]
        assert target["reason"] == "EvictionByEvictionAPI"

    def test_force_deletes_directly(self) -> None:
        assert delete(guarded(EVICTING), {"gracePeriodSeconds": 0}, **PERSON).code == 200

    def test_a_pod_annotation_sets_how_deletions_are_handled(self) -> None:
        assert delete(guarded(EVICTING, annotations={DELETE_ANNOTATION: DIRECT}), **PERSON).code == 200
        assert delete(guarded(EVICTING, annotations={DELETE_ANNOTATION: "gently"}), **PERSON).code == 429

    def test_a_pod_that_is_going_goes_on(self) -> None:
        going = {"deletionTimestamp": "1970-01-01T00:05:00Z", "deletionGracePeriodSeconds": 200}

        assert delete(guarded(EVICTING, metadata=going), {"gracePeriodSeconds": 1}, **PERSON).code == 200

    @pytest.mark.parametrize(
        "who",
        [
            {},
            {"field_manager": "kube-controller-manager"},
            {"identity": User("system:anonymous"), "field_manager": "kube-scheduler"},
            {"identity": User("system:serviceaccount:kube-system:replicaset-controller")},
            {"identity": User("system:node:n1"), "field_manager": "kubelet"},
        ],
    )
    def test_components_delete_without_eviction_rules(self, who: Raw) -> None:
        assert delete(guarded(EVICTING), **who).code == 200

    def test_preconditions_apply_to_deletions(self) -> None:
        assert delete(guarded(EVICTING, allowed=1), {"preconditions": {"uid": "other"}}, **PERSON).code == 409

    def test_a_dry_run_debits_nothing(self) -> None:
        api = guarded(EVICTING, allowed=1)

        assert delete(api, {"dryRun": ["All"]}, **PERSON).code == 200
        assert api.raw("PodDisruptionBudget", "default/web")["status"]["disruptionsAllowed"] == 1


class TestComponents:
    POLICY = disruption_policy(caps=[{"component": "rescheduler", "max": "1/1h"}])

    def evict(self, api: API, annotations: Raw | None = None, **who: Any) -> Response:
        body = {"metadata": {"annotations": annotations or {}}}
        return api.answer(Request(verb="create", kind="Pod", key=KEY, subresource="eviction", body=body, **who), NOW)

    @pytest.mark.parametrize(
        "who",
        [
            {"identity": User("system:serviceaccount:tools:mover")},
            {"identity": User("system:anonymous"), "field_manager": "mover"},
        ],
    )
    def test_an_identity_is_the_component_that_the_rules_say(self, who: Raw) -> None:
        components = {"system:serviceaccount:tools:mover": "rescheduler", "mover": "rescheduler"}
        api = guarded(RequestRules(components=components), self.POLICY, allowed=1)

        # What it says of itself does not count then.
        assert self.evict(api, {"podium.dev/component": "drain"}, **who).code == 201

        assert [cap["component"] for cap in api.raw("DisruptionPolicy", "default")["status"]["caps"]] == ["rescheduler"]

    def test_an_eviction_by_another_user_counts_for_its_declared_component(self) -> None:
        api = guarded(RequestRules(), self.POLICY, allowed=1)

        assert self.evict(api, {"podium.dev/component": "rescheduler"}, **PERSON).code == 201

        assert api.raw("DisruptionPolicy", "default")["status"]["caps"]

    def test_a_program_is_an_identity_when_all_users_are_anonymous(self) -> None:
        assert identity_of(Request(verb="get", kind="Pod", identity=User("system:anonymous"), field_manager="x")) == "x"
        assert identity_of(Request(verb="get", kind="Pod", identity=User("alice"), field_manager="x")) == "alice"


POLICIES = ("PreemptLowerPriority", "Never", "PreemptNever", "NonPreemptible", "NonPreemptiblePreemptNever")


@pytest.mark.parametrize("policy", POLICIES)
def test_every_preemption_policy_is_accepted_and_shown(policy: str) -> None:
    api = API()
    raw = priority_class("p", 5, preemptionPolicy=policy)

    created = api.ask("create", "PriorityClass", body=raw, field_validation="Strict")
    pod = running("a", spec={"priorityClassName": "p"})
    answered = api.ask("create", body=pod, field_validation="Strict")

    assert (created.code, created.to_dict()["preemptionPolicy"]) == (201, policy)
    spec = answered.to_dict()["spec"]
    assert (answered.code, spec["priority"], spec["preemptionPolicy"]) == (201, 5, policy)


def test_a_missing_class_is_rejected_in_kubernetes_words() -> None:
    status = API().ask("create", body=running("a", spec={"priorityClassName": "gone"})).to_dict()

    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert status["message"] == 'pods "a" is forbidden: no PriorityClass with name gone was found'


def test_quota_by_priority_is_refused_in_the_words_of_kubernetes() -> None:
    scope = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    quota: Raw = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}, "scopeSelector": scope},
    }
    api = API(priority_class("high", 5), quota)

    refused = api.ask("create", body=running("a", spec={"priorityClassName": "high"})).to_dict()

    assert (refused["code"], refused["reason"]) == (403, "Forbidden")
    assert refused["message"] == (
        'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0'
    )
    assert api.ask("create", body=running("b")).code == 201
