"""Admission policies, as their bindings apply them to requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.apirequests.authorization import Authorizer, User
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from tests.apirequests.asking import API, NOW
from tests.store.objects import Raw, pod

GROUP = "admissionregistration.k8s.io/v1"
PODS: Raw = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
MAPS: Raw = {**PODS, "resources": ["configmaps"]}


def validating(*validations: Raw, rule: Raw = MAPS, **spec: Any) -> Raw:
    constraints = {"resourceRules": [rule], **spec.pop("constraints", {})}
    spec = {"matchConstraints": constraints, "validations": list(validations), **spec}
    return {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec}


def mutating(*mutations: Raw, rule: Raw = MAPS, **spec: Any) -> Raw:
    constraints = {"resourceRules": [rule]}
    spec = {"matchConstraints": constraints, "reinvocationPolicy": "Never", "mutations": list(mutations), **spec}
    return {"apiVersion": GROUP, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": spec}


ADDED = {
    "patchType": "JSONPatch",
    "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/data/m", value: "1"}]'},
}


def bound(policy: Raw, **spec: Any) -> Raw:
    actions = {"validationActions": ["Deny"]} if policy["kind"].startswith("Validating") else {}
    return {
        "apiVersion": GROUP,
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", **actions, **spec},
    }


def config_map(name: str = "a", labels: Raw | None = None, **data: str) -> Raw:
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def api(policy: Raw, *objects: Raw, binding: Raw | None = None) -> API:
    found = API(*objects)
    for raw in (policy, binding or bound(policy)):
        response = found.ask("create", raw["kind"], body=raw, field_manager="m")
        assert (response.code, response.warnings) == (201, ()), response.error
    return found


def create(asked: API, raw: Raw, **more: Any) -> Response:
    return asked.ask("create", raw["kind"], namespace="default", body=raw, **more)


SHORT: Raw = {"expression": "size(object.data) <= 1", "message": "too much data"}
DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


def test_a_violated_validation_denies_the_request_with_its_message() -> None:
    asked = api(validating(SHORT))

    assert create(asked, config_map(a="1")).code == 201
    response = create(asked, config_map("b", a="1", b="2"))
    assert (response.code, response.to_dict()["reason"]) == (422, "Invalid")
    assert response.to_dict()["message"] == f'configmaps "default/b" is forbidden: {DENIED}too much data'.replace(
        "default/", ""
    )
    assert asked.store.find("ConfigMap", "default/b") is None


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_updates_are_validated_with_the_object_before(verb: Any) -> None:
    asked = api(validating({"expression": "oldObject == null || object.data.a >= oldObject.data.a"}))
    create(asked, config_map(a="5"))

    assert asked.ask(verb, "ConfigMap", "default/a", body=config_map(a="6")).code == 200
    response = asked.ask(verb, "ConfigMap", "default/a", body=config_map(a="1"))
    assert "failed expression: oldObject == null" in response.to_dict()["message"]
    assert asked.raw("ConfigMap", "default/a")["data"] == {"a": "6"}


def test_deletions_are_validated() -> None:
    keep: Raw = {
        "expression": "request.operation != 'DELETE' || !has(oldObject.metadata.labels.keep)",
        "reason": "Forbidden",
    }
    asked = api(validating(keep))
    create(asked, config_map(labels={"keep": ""}))
    create(asked, config_map("b", labels={"other": ""}))

    assert asked.ask("delete", "ConfigMap", "default/a").code == 403
    assert asked.ask("deletecollection", "ConfigMap", namespace="default").code == 403
    assert asked.ask("delete", "ConfigMap", "default/b").code == 200


def test_policies_see_the_options_of_a_request() -> None:
    kinds = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
    asked = api(validating({"expression": f"request.options.kind == {kinds}[request.operation]".replace("'", '"')}))

    assert create(asked, config_map()).code == 201
    assert asked.ask("update", "ConfigMap", "default/a", body=config_map(a="1")).code == 200
    assert asked.ask("delete", "ConfigMap", "default/a").code == 200


def test_requests_without_a_field_manager_are_validated_too() -> None:
    asked = api(validating({"expression": "object.spec.containers.size() == 0"}, rule=PODS))
    assert asked.ask("create", "Pod", body=pod("a")).code == 422


def test_actions_of_the_binding_decide_between_denial_and_warning() -> None:
    policy = validating(SHORT)
    asked = api(policy, binding=bound(policy, validationActions=["Warn", "Audit"]))

    response = create(asked, config_map(a="1", b="2"))
    assert (response.code, response.warnings) == (
        201,
        ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too much data",),
    )


def test_variables_and_message_expressions_are_evaluated() -> None:
    policy = validating(
        {
            "expression": "variables.names.all(name, name.startsWith('x'))",
            "messageExpression": "'names: ' + variables.names.join(',')",
        },
        variables=[
            {"name": "data", "expression": "object.data"},
            {"name": "names", "expression": "variables.data.map(key, key)"},
        ],
    )
    response = create(api(policy), config_map(y="1"))
    assert response.to_dict()["message"].endswith(f"{DENIED}names: y")


@pytest.mark.parametrize(("failure_policy", "code"), [("Fail", 422), ("Ignore", 201)])
def test_the_failure_policy_decides_about_errors(failure_policy: str, code: int) -> None:
    policy = validating({"expression": "object.spec.missing == 1"}, failurePolicy=failure_policy)
    response = create(api(policy), config_map())
    assert response.code == code
    if code == 422:
        assert (
            "expression 'object.spec.missing == 1' resulted in error: no such key: spec"
            in response.to_dict()["message"]
        )


def test_match_conditions_and_selectors_exclude_requests() -> None:
    policy = validating(
        {"expression": "false"},
        matchConditions=[{"name": "users", "expression": "request.userInfo.username != 'admin'"}],
        constraints={"objectSelector": {"matchLabels": {"checked": "yes"}}},
    )
    asked = api(policy)

    assert create(asked, config_map()).code == 201
    assert create(asked, config_map("b", {"checked": "yes"}), identity=User("admin")).code == 201
    assert create(asked, config_map("c", {"checked": "yes"}), identity=User("other")).code == 422
    # The object before counts as well.
    assert asked.ask("update", "ConfigMap", "default/b", body=config_map("b")).code == 422


def test_a_binding_that_lists_only_what_it_excludes_applies_to_all_else() -> None:
    policy = validating({"expression": "false"})
    excluded = {**MAPS, "resourceNames": ["free"]}
    asked = api(policy, binding=bound(policy, matchResources={"excludeResourceRules": [excluded]}))

    assert create(asked, config_map("free")).code == 201
    assert create(asked, config_map("a")).code == 422


def test_namespaces_are_selected_by_their_labels() -> None:
    policy = validating({"expression": "namespaceObject.metadata.name == 'default'"})
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"n": name}}}
        for name in ("default", "other")
    ]
    selector = {"namespaceSelector": {"matchLabels": {"n": "other"}}}
    asked = api(policy, *spaces, binding=bound(policy, matchResources=selector))

    assert create(asked, config_map()).code == 201
    raw = config_map()
    raw["metadata"]["namespace"] = "other"
    assert asked.ask("create", "ConfigMap", namespace="other", body=raw).code == 422


def test_parameters_come_from_the_binding() -> None:
    policy = validating(
        {"expression": "object.metadata.name == 'limit' || size(object.data) <= int(params.data.most)"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    reference = {"name": "limit", "parameterNotFoundAction": "Deny"}
    asked = api(policy, config_map("limit", most="2"), binding=bound(policy, paramRef=reference))
    assert create(asked, config_map(a="", b="")).code == 201
    assert create(asked, config_map("b", a="", b="", c="")).code == 422

    asked = api(policy, binding=bound(policy, paramRef=reference))
    assert "no params found for policy binding" in create(asked, config_map()).to_dict()["message"]
    allowing = {**reference, "parameterNotFoundAction": "Allow"}
    assert create(api(policy, binding=bound(policy, paramRef=allowing)), config_map()).code == 201


def test_a_binding_without_a_parameter_gives_null() -> None:
    of_map = {"apiVersion": "v1", "kind": "ConfigMap"}

    def created(expression: str, **spec: Any) -> str:
        asked = api(validating({"expression": expression}, paramKind=of_map, **spec))
        return str(create(asked, config_map()).to_dict().get("message", ""))

    assert created("params == null") == ""
    assert "failed expression: has(params.data)" in created("has(params.data)")
    assert "resulted in error: no such key: data" in created("params.data.most == '1'")
    assert created("params.data.most == '1'", failurePolicy="Ignore") == ""


def test_what_configures_admission_is_never_denied() -> None:
    every = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    asked = api(validating({"expression": "false"}, rule=every))

    assert asked.ask("delete", "ValidatingAdmissionPolicyBinding", "b").code == 200
    assert create(asked, config_map()).code == 201


def test_a_policy_that_cannot_be_parsed_is_refused() -> None:
    for validation in ({"expression": "object."}, {"expression": "true", "messageExpression": "'a"}):
        response = API().ask("create", "ValidatingAdmissionPolicy", body=validating(validation))
        assert response.code == 422
        assert "compilation failed: ERROR: <input>:1:" in str(response.to_dict()["message"])


ASKED = "authorizer.group('').resource('secrets').namespace('default')"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("authorizer.requestResource.check('create').allowed()", 201),
        ("authorizer.requestResource.check('delete').allowed()", 422),
        (f"{ASKED}.name('mine').check('get').allowed()", 201),
        (f"{ASKED}.name('yours').subresource('x').check('get').allowed()", 422),
        (f"!{ASKED}.name('yours').check('get').errored() && {ASKED}.check('get').reason() == ''", 201),
        (f"{ASKED}.fieldSelector('a=b').name('mine').check('get').allowed()", 201),
        ("authorizer.path('/metrics').check('get').allowed()", 201),
        ("authorizer.path('/healthz').check('get').allowed()", 422),
        ("authorizer.serviceAccount('default', 'robot').group('apps').resource('x').check('list').allowed()", 201),
        ("authorizer.group('apps').resource('x').check('list').allowed()", 422),
        ("request.userInfo.groups == ['writers']", 201),
    ],
)
def test_expressions_ask_the_authorizer_about_the_user(expression: str, code: int) -> None:
    rules = [
        {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]},
        {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
    ]
    robot = [{"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]}]
    asked = api(
        validating({"expression": expression}),
        *role("writer", rules, {"kind": "Group", "name": "writers"}),
        *role("robot", robot, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}),
    )
    router = Router(asked.store, authorizer=Authorizer(asked.store))
    body = config_map()
    anna = Request(verb="create", kind="ConfigMap", body=body, identity=User("anna", ("writers",)))

    assert router.answer(anna, NOW).code == code
    # Without an authorizer everything is allowed.
    assert code == 201 or create(asked, body).code == 201


def role(name: str, rules: list[Raw], subject: Raw) -> list[Raw]:
    """Return a ClusterRole with these rules, and its binding."""
    group = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    binding = {**head, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    return [{**head, "kind": "ClusterRole", "rules": rules}, binding]


def test_audit_annotations_are_evaluated_for_admitted_and_denied_requests() -> None:
    annotations = [
        {"key": "size", "valueExpression": "string(size(object.data)) + ' entries'"},
        {"key": "none", "valueExpression": "size(object.data) > 5 ? 'large' : null"},
    ]
    asked = api(validating(SHORT, auditAnnotations=annotations))

    assert create(asked, config_map(a="1")).audited == {"p/size": "1 entries"}
    denied = create(asked, config_map("b", a="1", b="2"))
    assert (denied.code, denied.audited) == (422, {"p/size": "2 entries"})


def test_an_audit_annotation_that_fails_denies_the_request_unless_failures_are_ignored() -> None:
    annotations = [{"key": "size", "valueExpression": "object.data.absent"}]
    policy = validating(SHORT, auditAnnotations=annotations)

    denied = create(api(policy, binding=bound(policy, validationActions=["Warn"])), config_map())
    policy["spec"]["failurePolicy"] = "Ignore"
    admitted = create(api(policy), config_map())

    assert (denied.code, admitted.code, admitted.audited) == (422, 201, {})
    assert "no such key: absent" in denied.to_dict()["message"]


def test_violations_are_recorded_in_the_audit_event() -> None:
    policy = validating({"expression": "true"}, SHORT)
    asked = api(policy, binding=bound(policy, validationActions=["Audit"]))

    response = create(asked, config_map(a="1", b="2"))

    [(key, value)] = response.audited.items()
    assert (response.code, key) == (201, "validation.policy.admission.k8s.io/validation_failure")
    failure = {"message": "too much data", "policy": "p", "binding": "b", "expressionIndex": 1}
    assert json.loads(value) == [{**failure, "validationActions": ["Audit"]}]


def test_apply_configurations_are_merged() -> None:
    expression = (
        "Object{metadata: Object.metadata{labels: {'made': 'here'}}, data: Object.data{b: object.data.a + '!'}}"
    )
    asked = api(mutating({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}))

    raw = create(asked, config_map(labels={"own": "1"}, a="x")).to_dict()
    assert raw["metadata"]["labels"] == {"own": "1", "made": "here"}
    assert raw["data"] == {"a": "x", "b": "x!"}
    # Admission of an update that drops it adds it again.
    raw = asked.ask("update", "ConfigMap", "default/a", body=config_map(a="y")).to_dict()
    assert raw["data"] == {"a": "y", "b": "y!"}


def test_json_patches_of_policies_are_applied_and_defaults_follow() -> None:
    expression = """[
      JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: "c"},
      JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": "side", "image": "car"}}]"""
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    asked = api(mutating(patch, rule=PODS))

    raw = asked.ask("create", "Pod", body=pod("a", labels={"x": "y"}), field_manager="m").to_dict()
    assert raw["metadata"]["labels"] == {"x": "y", "a/b": "c"}
    assert [each["name"] for each in raw["spec"]["containers"]][1:] == ["side"]
    assert raw["spec"]["containers"][1]["imagePullPolicy"] == "Always"


def test_validations_see_what_mutations_made() -> None:
    asked = api(mutating(ADDED))
    policy = validating({"expression": "!('m' in object.data)"})
    for raw in (policy, bound(policy)):
        asked.ask("create", raw["kind"], body=raw)

    assert create(asked, config_map(a="1")).code == 422


def test_a_mutation_that_fails_denies_the_request() -> None:
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "remove", path: "/data/m"}]'}}
    message = create(api(mutating(patch)), config_map(a="1")).to_dict()["message"]
    assert "MutatingAdmissionPolicy 'p' with binding 'b' denied request: operation 0 of the patch" in message


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("Object{spec: Object.spec{size: 1}}", ".spec: field not declared in schema"),
        ("Object{metadata: Object.metadata{size: 1}}", ".metadata.size: field not declared in schema"),
        ("Object{data: 'text'}", "data: "),
    ],
)
@pytest.mark.parametrize(("failure_policy", "code"), [("Fail", 422), ("Ignore", 201)])
def test_a_configuration_that_does_not_fit_the_kind_fails(
    expression: str, problem: str, failure_policy: str, code: int
) -> None:
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    response = create(api(mutating(mutation, failurePolicy=failure_policy)), config_map(a="1"))

    assert response.code == code
    if code == 201:
        assert response.to_dict()["data"] == {"a": "1"}
    else:
        assert problem in response.to_dict()["message"]


def test_optional_entries_of_a_configuration_are_left_out_if_they_are_not_there() -> None:
    expression = "Object{data: {?'b': object.data[?'a'], ?'c': object.data[?'none']}}"
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}

    assert create(api(mutating(mutation)), config_map(a="1")).to_dict()["data"] == {"a": "1", "b": "1"}


def test_dry_runs_are_admitted_and_leave_nothing() -> None:
    asked = api(validating(SHORT))
    assert create(asked, config_map(a="1"), dry_run=True).code == 201
    assert create(asked, config_map("b", a="1", b="2"), dry_run=True).code == 422
    assert asked.store.find("ConfigMap", "default/a") is None


def test_policies_that_want_it_are_evaluated_again_after_later_ones() -> None:
    def step(needs: str, adds: str) -> Raw:
        patch = f"[JSONPatch{{op: 'add', path: '/data/{adds}', value: 'x'}}]"
        expression = f"'{needs}' in object.data && !('{adds}' in object.data) ? {patch} : []"
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}

    def named(name: str, mutation: Raw, reinvocation: str) -> list[Raw]:
        policy = mutating(mutation, reinvocationPolicy=reinvocation)
        binding = bound(policy, policyName=name)
        return [{**policy, "metadata": {"name": name}}, {**binding, "metadata": {"name": f"of-{name}"}}]

    def result(reinvocation: str) -> Raw:
        asked = API(*named("p1", step("b", "c"), reinvocation), *named("p2", step("a", "b"), "Never"))
        data: Raw = create(asked, config_map(a="1")).to_dict()["data"]
        return data

    assert result("IfNeeded") == {"a": "1", "b": "x", "c": "x"}
    assert result("Never") == {"a": "1", "b": "x"}


def test_a_namespace_is_in_no_namespace() -> None:
    rule = {**PODS, "resources": ["namespaces"]}
    asked = api(validating({"expression": "namespaceObject == null"}, rule=rule))

    assert (
        asked.ask("create", "Namespace", body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}).code
        == 201
    )


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (validating({"expression": ""}), "spec.validations[0].expression"),
        (validating({"expression": "true", "reason": "Nope"}), "spec.validations[0].reason"),
        (validating(SHORT, failurePolicy="Other"), "spec.failurePolicy"),
        (validating(SHORT, paramKind={"kind": "ConfigMap"}), "spec.paramKind.apiVersion"),
        (validating(SHORT, variables=[{"expression": "1"}]), "spec.variables[0].name"),
        (mutating({**ADDED, "patchType": "Other"}), "spec.mutations[0].patchType"),
        (mutating(), "spec.mutations"),
        (mutating(ADDED, reinvocationPolicy="Sometimes"), "spec.reinvocationPolicy"),
        (bound(validating(SHORT), validationActions=[]), "spec.validationActions"),
        (bound(validating(SHORT), validationActions=["Shout"]), "spec.validationActions[0]"),
        (bound(validating(SHORT), policyName=""), "spec.policyName"),
        (
            bound(validating(SHORT), paramRef={"name": "a", "parameterNotFoundAction": "Skip"}),
            "spec.paramRef.parameterNotFoundAction",
        ),
    ],
)
def test_incomplete_policies_and_bindings_are_refused(policy: Raw, field: str) -> None:
    answer = API().ask("create", policy["kind"], body=policy, field_manager="m", field_validation="Warn").to_dict()

    assert answer["code"] == 422
    assert [cause["field"] for cause in answer["details"]["causes"]] == [field]
