"""Rights in `deploy/` equal the requests and watches of the programs."""

from __future__ import annotations

import pytest

from podium.api.kinds import KINDS
from podium.controllers.scheduling.scheduler import Scheduler
from tests.deploy.manifests import Raw, base, chart, chart_of_rescheduler, of_kind
from tools import rbac
from tools.asked_rights import Right

each_rescheduler = pytest.mark.parametrize(
    "objects", [base("rescheduler"), chart_of_rescheduler()], ids=["kustomize", "helm"]
)

# What no scheduler gets, whatever it asks for.
NEVER = {
    ("", "secrets"),
    ("", "configmaps"),
    ("", "serviceaccounts"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("", "pods/exec"),
}


def granted(objects: list[Raw], *suffixes: str) -> set[Right]:
    """Return the rights of the ClusterRoles whose names end so."""
    roles = [role for role in of_kind(objects, "ClusterRole") if role["metadata"]["name"].endswith(suffixes)]
    return {
        Right(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_files_are_what_the_tool_makes() -> None:
    assert rbac.main(["--check"]) == 0


@pytest.mark.parametrize("objects", [base(), chart()], ids=["kustomize", "helm"])
def test_roles_grant_exactly_the_watches_and_requests_in_use(objects: list[Raw]) -> None:
    assert granted(objects, "-scheduler") == rbac.scheduler_rights()
    preempting = {Right("", "pods", verb) for verb in ("delete", "patch")}
    # Disruptions are counted in annotations of budgets, and in the policy's status.
    preempting |= {
        Right("", "pods/eviction", "create"),
        Right("policy", "poddisruptionbudgets", "patch"),
        Right("podium.dev", "disruptionpolicies/status", "patch"),
    }
    assert granted(objects, "-preemption") == rbac.preemption_rights() == preempting


def test_every_action_that_a_scheduler_may_ask_for_has_been_tried() -> None:
    assert rbac.emitted(rbac.SCHEDULING) == rbac.EXAMPLES


def test_every_action_that_a_rescheduler_may_ask_for_has_been_tried() -> None:
    assert rbac.emitted(rbac.RESCHEDULING) == rbac.RESCHEDULER_EXAMPLES


def test_every_kind_that_a_scheduler_watches_may_be_seen() -> None:
    rights = rbac.scheduler_rights()

    for kind in KINDS.values():
        seen = {Right(kind.group, kind.plural, verb) for verb in ("list", "watch")} <= rights
        assert seen == (kind.name in Scheduler.watches), kind.name


@pytest.mark.parametrize("objects", [base(), chart()], ids=["kustomize", "helm"])
def test_no_role_grants_secrets_wildcards_or_escalation(objects: list[Raw]) -> None:
    rights = granted(objects, "-scheduler", "-preemption") | rbac.reader_rights()

    assert not {(right.group, right.resource) for right in rights} & NEVER
    assert not {part for right in rights for part in (right.group, right.resource, right.verb)} & {"*"}
    assert not {right.verb for right in rights} & {"impersonate", "escalate", "bind", "deletecollection"}
    assert not {right for right in rights if right.resource == "nodes" and right.verb not in rbac.SEE}


@each_rescheduler
def test_a_rescheduler_is_granted_what_it_watches_and_asks_for(objects: list[Raw]) -> None:
    assert granted(objects, "-rescheduler") == rbac.rescheduler_rights()
    assert granted(objects, "-nodes") == rbac.node_marking_rights() == {Right("", "nodes", "patch")}
    changes = {right for right in rbac.rescheduler_rights() if right.verb not in rbac.SEE}
    assert changes == {
        Right("", "pods/eviction", "create"),
        Right("", "events", "create"),
        Right("", "events", "patch"),
        Right("policy", "poddisruptionbudgets", "patch"),
        Right("podium.dev", "disruptionpolicies/status", "patch"),
    }


@each_rescheduler
def test_the_rescheduler_may_read_one_config_map_and_delete_nothing(objects: list[Raw]) -> None:
    rights = granted(objects, "-rescheduler", "-nodes") | rbac.guidance_rights()
    assert not {(right.group, right.resource) for right in rights} & NEVER
    assert not {right.verb for right in rights} & {"*", "delete", "deletecollection", "impersonate", "escalate", "bind"}
    (configuration,) = of_kind(objects, "ConfigMap")
    (role,) = (role for role in of_kind(objects, "Role") if role["metadata"]["name"].endswith("-configuration"))
    (rule,) = role["rules"]
    assert rule["resourceNames"] == [configuration["metadata"]["name"]]
    assert {Right("", resource, verb) for resource in rule["resources"] for verb in rule["verbs"]} == (
        rbac.configuration_rights()
    )


@each_rescheduler
def test_its_lease_may_be_changed_by_its_name_alone(objects: list[Raw]) -> None:
    (role,) = (role for role in of_kind(objects, "Role") if role["metadata"]["name"].endswith("-lease"))
    (deployment,) = of_kind(objects, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    (lease,) = (argument.partition("=")[2] for argument in arguments if "resource-name=" in argument)
    assert role["rules"][1]["resourceNames"] == [lease]


def test_guidance_takes_to_nominate_and_to_bind() -> None:
    assert {right for right in rbac.guidance_rights() if right.verb not in rbac.SEE} == {
        Right("", "pods/binding", "create"),
        Right("", "pods/status", "patch"),
    }


def test_the_reader_may_list_all_that_a_command_with_context_reads() -> None:
    lists = {right.resource for right in rbac.reader_rights() if right.verb == "list"}

    # Pods that are gone, and their owners: what `podium ledger` reads.
    assert {"events", "pods", "replicasets", "statefulsets", "jobs", "volumeattachments"} <= lists


def test_read_only_roles_grant_no_writes() -> None:
    assert {right.verb for right in rbac.reader_rights()} == {"list", "watch"}
    read = {kind.plural for kind in KINDS.values()} | {"events"}
    assert {right.resource for right in rbac.reader_rights()} == read


def test_avoid_list_trimmers_may_patch_nodes_and_read_pod_controllers() -> None:
    rights = rbac.avoid_list_rights()

    assert {right for right in rights if right.verb not in rbac.SEE} == {Right("", "nodes", "patch")}
    assert not rights & rbac.scheduler_rights()


def test_evictors_may_patch_nodes_only_if_the_api_server_writes_no_hints() -> None:
    evict = Right("", "pods/eviction", "create")

    assert rbac.eviction_rights(is_podium_server=True) == {evict}
    assert rbac.eviction_rights(is_podium_server=False) == {
        evict,
        Right("", "pods", "get"),
        Right("", "nodes", "get"),
        Right("", "nodes", "patch"),
        Right("podium.dev", "disruptionpolicies", "get"),
    }


@pytest.mark.parametrize("objects", [base(), chart()], ids=["kustomize", "helm"])
def test_a_lease_may_be_changed_by_its_name_alone(objects: list[Raw]) -> None:
    (role,) = of_kind(objects, "Role")
    (deployment,) = of_kind(objects, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    (lease,) = (argument.partition("=")[2] for argument in arguments if "resource-name=" in argument)

    assert [rule["verbs"] for rule in role["rules"]] == [["create"], ["get", "update"]]
    assert role["rules"][1]["resourceNames"] == [lease]
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {"leases"}


@pytest.mark.parametrize(
    "objects",
    [base(), chart(), base("rescheduler"), chart_of_rescheduler()],
    ids=["kustomize", "helm", "rescheduler-kustomize", "rescheduler-helm"],
)
def test_every_binding_gives_an_existing_role_to_the_account_of_the_pods(objects: list[Raw]) -> None:
    (account,) = of_kind(objects, "ServiceAccount")
    roles = {
        (role["kind"], role["metadata"]["name"]) for kind in ("Role", "ClusterRole") for role in of_kind(objects, kind)
    }
    bindings = of_kind(objects, "ClusterRoleBinding") + of_kind(objects, "RoleBinding")

    assert {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings} == roles
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == {account["metadata"]["name"]}
    assert account["automountServiceAccountToken"] is False


def test_without_preemption_the_chart_grants_no_deletion() -> None:
    objects = chart(preemption=False)

    assert granted(objects, "-preemption") == set()
    assert {binding["roleRef"]["name"] for binding in of_kind(objects, "ClusterRoleBinding")} == {"test-scheduler"}
