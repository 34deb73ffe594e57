"""Webhooks, admission policies and bindings that kube-apiserver refuses, one rule per row, and ones that it accepts."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.validation.objects import find_problems
from tests.api.manifests import GONE, Raw, changed, of, paths_of

GROUP = "admissionregistration.k8s.io/v1"
RULE: Raw = {"operations": ["CREATE"], "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["pods"]}
HOOK: Raw = {
    "name": "webhook.k8s.io",
    "clientConfig": {"url": "https://example.com/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [RULE],
}
SERVICE = {"namespace": "ns", "name": "n", "path": "/foo"}
WEBHOOK = of(GROUP, "MutatingWebhookConfiguration", False, webhooks=[HOOK])
VALIDATING = of(
    GROUP,
    "ValidatingAdmissionPolicy",
    False,
    spec={"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "object.x < 100"}]},
)
APPLIED = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
MUTATING = of(
    GROUP,
    "MutatingAdmissionPolicy",
    False,
    spec={"matchConstraints": {"resourceRules": [RULE]}, "reinvocationPolicy": "Never", "mutations": [APPLIED]},
)
REFERENCE = {"name": "x", "parameterNotFoundAction": "Deny"}
BINDING = of(
    GROUP,
    "ValidatingAdmissionPolicyBinding",
    False,
    spec={"policyName": "a.example.com", "paramRef": REFERENCE, "validationActions": ["Deny"]},
)
VALID = [WEBHOOK, VALIDATING, MUTATING, BINDING]
CONFIG, RULES, FIRST = "webhooks.0.clientConfig", "webhooks.0.rules.0", "spec.validations.0"
KIND = {"kind": "ConfigMap", "apiVersion": "v1"}


def conditions(*expressions: str) -> list[Raw]:
    return [{"name": f"c{number}", "expression": expression} for number, expression in enumerate(expressions)]


REFUSED: list[tuple[Raw, dict[str, Any], str]] = [
    (WEBHOOK, {"webhooks.0.name": "k8s.io"}, "must be a domain of at least three segments"),
    (WEBHOOK, {"webhooks.0.name": "a_b.k8s.io"}, "must be a domain of at least three segments"),
    (WEBHOOK, {"webhooks": [HOOK, HOOK]}, 'webhooks[1].name: Duplicate value: "webhook.k8s.io"'),
    (WEBHOOK, {"webhooks.0.admissionReviewVersions": ["v1", "v1"]}, 'Duplicate value: "v1"'),
    (WEBHOOK, {"webhooks.0.admissionReviewVersions": ["v1", "0v"]}, "must be lower-case letters, digits and '-'"),
    (WEBHOOK, {f"{RULES}.scope": "World"}, 'scope: Unsupported value: "World"'),
    (VALIDATING, {"spec.matchConstraints.resourceRules.0.resourceNames": ["a", "a"]}, 'Duplicate value: "a"'),
    (VALIDATING, {f"{FIRST}.message": " "}, "must be one line that is not blank"),
    (VALIDATING, {f"{FIRST}.message": "a\nb"}, "must be one line that is not blank"),
    (MUTATING, {"spec.mutations.0.applyConfiguration": GONE}, "exactly one of `applyConfiguration`, `jsonPatch`"),
    (MUTATING, {"spec.mutations.0.jsonPatch": {"expression": "[]"}}, "exactly one of `applyConfiguration`"),
    (WEBHOOK, {"webhooks.0.admissionReviewVersions": ["v2"]}, "must include at least one of v1, v1beta1"),
    (WEBHOOK, {"webhooks.0.reinvocationPolicy": "Often"}, 'reinvocationPolicy: Unsupported value: "Often"'),
    (WEBHOOK, {"webhooks.0.matchPolicy": "Often"}, 'matchPolicy: Unsupported value: "Often"'),
    (WEBHOOK, {"webhooks.0.sideEffects": "Some"}, 'sideEffects: Unsupported value: "Some"'),
    (WEBHOOK, {"webhooks.0.timeoutSeconds": 31}, "timeoutSeconds: Invalid value: 31"),
    (WEBHOOK, {"webhooks.0.objectSelector": {"matchLabels": {"a": "?!"}}}, "objectSelector"),
    (WEBHOOK, {f"{RULES}.operations": ["*", "CREATE"]}, "must not specify other operations"),
    (WEBHOOK, {f"{RULES}.operations": ["Create"]}, 'operations[0]: Unsupported value: "Create"'),
    (WEBHOOK, {f"{RULES}.apiGroups": []}, "apiGroups: Required value"),
    (WEBHOOK, {f"{RULES}.apiGroups": ["*", "a"]}, "must not specify other apiGroups"),
    (WEBHOOK, {f"{RULES}.resources": ["a/*", "a/b"]}, "[1]: Invalid value: \"a/b\": if 'a/*' is present, must not"),
    (WEBHOOK, {f"{RULES}.resources": ["*/b", "a/b"]}, "[1]: Invalid value: \"a/b\": if '*/b' is present, must not"),
    (WEBHOOK, {f"{RULES}.resources": ["*/*", "a"]}, "if '*/*' is present, must not specify other resources"),
    (WEBHOOK, {f"{RULES}.resources": ["*", "a"]}, "must not specify other resources without subresources"),
    (WEBHOOK, {CONFIG: GONE}, "clientConfig: Required value: exactly one of `url`, `service` is required"),
    (WEBHOOK, {f"{CONFIG}.service": SERVICE}, "exactly one of `url`, `service` is required"),
    (WEBHOOK, {CONFIG: {"url": "http://a/b"}}, "must be https://host[/path]"),
    (WEBHOOK, {CONFIG: {"url": "https:///b"}}, "must be https://host[/path]"),
    (WEBHOOK, {CONFIG: {"url": "https://u@a/b"}}, "must be https://host[/path]"),
    (WEBHOOK, {CONFIG: {"url": "https://a/b#c"}}, "must be https://host[/path]"),
    (WEBHOOK, {CONFIG: {"url": "https://a/b?c=d"}}, "must be https://host[/path]"),
    (WEBHOOK, {CONFIG: {"service": {**SERVICE, "name": ""}}}, "clientConfig.service.name: Required value"),
    (WEBHOOK, {CONFIG: {"service": {**SERVICE, "path": "foo"}}}, "path: Invalid value: \"foo\": must start with a '/'"),
    (WEBHOOK, {CONFIG: {"service": {**SERVICE, "path": "//"}}}, 'Invalid value: "//": segment[0] may not be empty'),
    (WEBHOOK, {CONFIG: {"service": {**SERVICE, "path": "/a/b_c"}}}, 'Invalid value: "/a/b_c": segment[1]: '),
    (WEBHOOK, {"webhooks.0.matchConditions": conditions(*["true"] * 65)}, "Too many: 65"),
    (WEBHOOK, {"webhooks.0.matchConditions": conditions("true") * 2}, 'name: Duplicate value: "c0"'),
    (WEBHOOK, {"webhooks.0.matchConditions": [{"name": "a b", "expression": "true"}]}, "is not a valid key"),
    (WEBHOOK, {"webhooks.0.matchConditions": conditions("'a'")}, "must evaluate to bool"),
    (WEBHOOK, {"webhooks.0.matchConditions": conditions("a == 1")}, "undeclared reference to 'a'"),
    (WEBHOOK, {"webhooks.0.matchConditions": conditions("params.a")}, "undeclared reference to 'params'"),
    (VALIDATING, {"spec.failurePolicy": "Maybe"}, 'failurePolicy: Unsupported value: "Maybe"'),
    (VALIDATING, {"spec.matchConstraints": {}}, "matchConstraints.resourceRules: Required value"),
    (VALIDATING, {"spec.matchConstraints.excludeResourceRules": [{**RULE, "resources": []}]}, "[0].resources: Req"),
    (VALIDATING, {f"{FIRST}.expression": "'a'"}, "expression: Invalid value: \"'a'\": must evaluate to bool"),
    (VALIDATING, {f"{FIRST}.expression": "params.a == 1"}, "undeclared reference to 'params'"),
    (VALIDATING, {f"{FIRST}.expression": "variables.a == 1"}, "undefined field 'a'"),
    (VALIDATING, {f"{FIRST}.expression": "object.x in [1, 2, "}, "compilation failed"),
    (VALIDATING, {f"{FIRST}.messageExpression": "1"}, "must evaluate to string"),
    (VALIDATING, {"spec.auditAnnotations": [{"key": "a", "valueExpression": "true"}]}, "string or null_type"),
    (VALIDATING, {"spec.auditAnnotations": [{"key": "a", "valueExpression": "''"}] * 2}, 'Duplicate value: "a"'),
    (VALIDATING, {"spec.variables": [{"name": "4a", "expression": "1"}]}, "name is not a valid CEL identifier"),
    (VALIDATING, {"spec.variables": [{"name": "a", "expression": "variables.b"}]}, "undefined field 'b'"),
    (MUTATING, {"spec.mutations.0.patchType": "Other"}, 'patchType: Unsupported value: "Other"'),
    (MUTATING, {"spec.mutations.0.applyConfiguration.expression": ""}, "expression: Required value"),
    (MUTATING, {"spec.mutations.0.applyConfiguration.expression": "true"}, "must evaluate to map or object"),
    (BINDING, {"spec.policyName": "a b"}, "spec.policyName: Invalid value"),
    (BINDING, {"spec.paramRef": {"parameterNotFoundAction": "Deny"}}, "Required value: one of name or selector"),
    (VALIDATING, {"spec.paramKind": {"kind": "A"}}, "paramKind.apiVersion: Required value"),
    (VALIDATING, {"spec.paramKind": {"kind": "A_", "apiVersion": "v1"}}, 'paramKind.kind: Invalid value: "a_"'),
    (VALIDATING, {"spec.paramKind": {"kind": "A", "apiVersion": "a/b/v1"}}, 'apiVersion: Invalid value: "a/b"'),
    (VALIDATING, {"spec.paramKind": {"kind": "A", "apiVersion": "a/"}}, 'paramKind.apiVersion: Invalid value: ""'),
    (VALIDATING, {"spec.paramKind": {"kind": "A", "apiVersion": "1"}}, 'paramKind.apiVersion: Invalid value: "1"'),
    (BINDING, {"spec.validationActions": ["Deny", "Warn"]}, "must not contain both Deny and Warn (repeating the same"),
    (BINDING, {"spec.matchResources": {"matchPolicy": "Often"}}, 'matchPolicy: Unsupported value: "Often"'),
    (BINDING, {"spec.validationActions": ["Deny", "Deny"]}, 'Duplicate value: "Deny"'),
]  # fmt: skip


def problems(raw: Raw) -> list[str]:
    return [str(one) for one in find_problems(raw)]


@pytest.mark.parametrize(("raw", "changes", "problem"), REFUSED, ids=[problem[:70] for _, _, problem in REFUSED])
def test_each_thing_that_kube_apiserver_refuses_is_one_finding(raw: Raw, changes: dict[str, Any], problem: str) -> None:
    found = problems(changed(raw, changes))
    assert len(found) == 1, found
    assert problem in found[0]


def test_a_parameter_is_either_named_or_selected() -> None:
    found = problems(changed(BINDING, {"spec.paramRef.selector": {"matchLabels": {"a": "b"}}}))
    problem = "Forbidden: name and selector are mutually exclusive"
    assert found == [f".spec.paramRef.name: {problem}", f".spec.paramRef.selector: {problem}"]


@pytest.mark.parametrize("path", ["/", "/a", "/a/b.c/"])
def test_a_webhook_at_a_service_may_have_a_path_of_names(path: str) -> None:
    assert problems(changed(WEBHOOK, {CONFIG: {"service": {**SERVICE, "path": path}}})) == []


def test_rules_may_list_all_resources_beside_subresources() -> None:
    assert problems(changed(WEBHOOK, {f"{RULES}.resources": ["*", "a/b", "a/*", "*/b"]})) == []
    assert problems(changed(VALIDATING, {"spec.paramKind": {"kind": "A-b", "apiVersion": "a.b/v1beta1"}})) == []


def test_a_policy_has_validations_or_annotations() -> None:
    found = problems(changed(VALIDATING, {"spec.validations": []}))
    reason = "Required value: validations or auditAnnotations must contain at least one item"
    assert found == [f".spec.validations: {reason}"]


TAKEN: list[tuple[Raw, dict[str, Any]]] = [
    *((raw, {}) for raw in VALID),
    (WEBHOOK, {"webhooks.0.admissionReviewVersions": ["v1", "unknown"]}),
    (WEBHOOK, {f"{RULES}.resources": ["*", "a/b"], f"{RULES}.scope": "*"}),
    (WEBHOOK, {f"{RULES}.resources": ["a", "a/*"], f"{RULES}.apiGroups": [""]}),
    (WEBHOOK, {CONFIG: {"service": {**SERVICE, "path": "/foo/", "port": 8443}}}),
    (WEBHOOK, {CONFIG: {"service": {**SERVICE, "path": "/"}}}),
    (WEBHOOK, {"webhooks.0.matchConditions": conditions("authorizer.path('/a').check('get').allowed()")}),
    (VALIDATING, {"spec.paramKind": KIND, f"{FIRST}.expression": "params.a == object.b"}),
    (VALIDATING, {"spec.validations": [], "spec.auditAnnotations": [{"key": "a", "valueExpression": "null"}]}),
    (
        VALIDATING,
        {
            "spec.variables": [
                {"name": "a", "expression": "object.a"},
                {"name": "b", "expression": "variables.a + 1"},
            ],
            f"{FIRST}.expression": "variables.b == 2",
            f"{FIRST}.messageExpression": "string(variables.b)",
        },
    ),
    (MUTATING, {"spec.mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add'}]"}}]}),
    (BINDING, {"spec.paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}),
    (BINDING, {"spec.validationActions": ["Warn", "Audit"]}),
]


@pytest.mark.parametrize(("raw", "changes"), TAKEN)
def test_objects_that_kube_apiserver_accepts_have_no_findings(raw: Raw, changes: dict[str, Any]) -> None:
    assert problems(changed(raw, changes)) == []


@pytest.mark.parametrize("raw", VALID)
@pytest.mark.parametrize("junk", [5, "x", [5], [[]], {"x": 5}, None], ids=str)
def test_junk_in_any_field_is_reported_without_a_traceback(raw: Raw, junk: Any) -> None:
    for path in paths_of(raw):
        if path.count("/") > 1 and "." not in path:
            find_problems(changed(raw, {path[1:]: junk}))
