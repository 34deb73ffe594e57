"""ValidatingAdmissionPolicies, MutatingAdmissionPolicies, and the requests that a policy or a webhook applies to.

Source: apiserver (pkg/admission/plugin/policy: validating/dispatcher.go and validator.go, mutating/dispatcher.go and
patch, generic/policy_dispatcher.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

from podium.api.cel.access import AuthorizerValue
from podium.api.cel.compiler import Compiled, Compiler, Declaration, Variables, decided
from podium.api.cel.syntax import parse
from podium.api.cel.values import DYN, CompileError, EvaluationError, Value
from podium.api.errors import shown
from podium.api.meta import Raw, key_of, object_at, objects_at, value_at
from podium.api.ownership import KeyMissingError, merged
from podium.api.reading import read
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, fields_of, schema_of
from podium.api.selectors import LabelSelector, compile_label_selector
from podium.api.structural.structural import declaration, escaped
from podium.api.validation.objects import policy_variables
from podium.apirequests import authorization
from podium.apirequests.authorization import lists
from podium.apirequests.context import checked_fields
from podium.apirequests.request import Request
from podium.store import api_resources, field_ownership, patching
from podium.store.errors import StoreError, forbidden
from podium.store.store import Store

COST_LIMIT = 1_000_000
"""The cost limit of all expressions of a policy for one request and one parameter."""

_DECLARED = policy_variables()
_OF_KINDS = ("apiGroups", "apiVersions", "resources")
_LEAVES = {"bool": "bool", "float": "double", "int": "int", "long": "int", "str": "string"}
_APPLYING: dict[str, Any] = {"verb": "patch", "patch_type": "apply", "kind": "", "field_validation": "Strict"}
_LONGEST_ANNOTATION = 10 * 1024
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


class AdmissionPolicyError(EvaluationError):
    """An error of a policy, for which its failurePolicy decides."""


class _Binding(NamedTuple):
    """A binding of a policy, and one of its parameters (None for none)."""

    name: str
    spec: Raw
    params: Raw | None


@lru_cache(maxsize=1_024)
def _program(text: str) -> Compiled:
    try:
        return Compiler(text, _DECLARED).compile(parse(text))
    except (CompileError, RecursionError) as error:
        raise AdmissionPolicyError(f"compilation error: {error}") from None


def type_checks(resources: api_resources.APIResources, policy: Raw) -> Iterator[int | Raw]:
    """Check whether the expressions of a validating policy fit ten of the kinds that it names.

    Yield the length of each checked expression, for each kind, and then the status with the warnings.

    Source: apiserver's pkg/admission/plugin/policy/validating/typechecking.go.
    """
    spec, warnings = object_at(policy, "spec"), []
    named = dict(_named_kinds(resources, objects_at(spec, "matchConstraints", "resourceRules")))
    kinds = sorted(named.items(), key=lambda item: item[0])[:10]
    for index, validation in enumerate(objects_at(spec, "validations")):
        for field in ("expression", "messageExpression"):
            text, problems = str(validation.get(field) or ""), []
            for kind, type_ in kinds if text else ():
                try:
                    Compiler(text, {**_DECLARED, "object": type_, "oldObject": type_}).compile(parse(text))
                except (CompileError, RecursionError) as error:
                    problems.append(f"{kind}: {error}\n")
                yield len(text)
            if problems:
                warnings.append({"fieldRef": f"spec.validations[{index}].{field}", "warning": "\n".join(problems)})
    checked = {"expressionWarnings": warnings} if warnings else {}
    yield {"typeChecking": checked, "observedGeneration": policy["metadata"].get("generation")}


def _named_kinds(resources: api_resources.APIResources, rules: Iterable[Raw]) -> Iterator[tuple[str, Declaration]]:
    """Yield the kinds that rules name without wildcards, and the type of their objects."""
    for rule in rules:
        for group, version, plural in product(*(rule.get(name) or () for name in _OF_KINDS)):
            api_version = f"{group}/{version}" if group else version
            kind = resources.served_at(api_version, plural)
            if kind is not None:
                structural = resources.structural(kind, api_version)
                own = schema_of(kind.group, kind.kind) if kind.api_version == api_version else None
                type_ = _type_of(own) if structural is None else declaration(structural, is_root=True)
                yield f"{api_version}, Kind={kind.kind}", type_


@cache
def _type_of(type_: Type | None) -> Declaration:
    """Return what expressions know of a value of a type in the catalogue."""
    match type_:
        case Leaf(name):
            return Declaration(_LEAVES.get(name, DYN))
        case ListOf(inner) | MapOf(inner):
            return Declaration("list" if isinstance(type_, ListOf) else "map", items=_type_of(inner))
        case Object(name) if name != "JSONSchemaProps":
            return Declaration("object", {escaped(own): _type_of(field.type) for own, field in fields_of(name).items()})
    # Schemas contain themselves.
    return Declaration(DYN)


def plain(value: Any) -> Value:
    """Return the CEL value of a JSON value."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return tuple(map(plain, value)) if isinstance(value, list) else value


def as_json(value: Value) -> Any:
    """Return the JSON value of a CEL value. Raises AdmissionPolicyError for one that has none."""
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [as_json(inner) for inner in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise AdmissionPolicyError(f"{shown(value)} is not a value of an object")


class _LazyVariables(dict[str, Value]):
    """The variables of a policy, each evaluated when it is first used."""

    def __init__(self, texts: Mapping[str, str], scope: Variables) -> None:
        super().__init__()
        self._texts = texts
        self._scope = scope

    def __missing__(self, name: str) -> Value:
        value = self[name] = _program(self._texts[name]).evaluate(self._scope)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._texts


class PolicyEvaluation:
    """The evaluation of expressions about one request, with the variables of a policy."""

    def __init__(self, attributes: AdmissionAttributes, namespace: Raw | None, params: Raw | None, policy: Raw) -> None:
        texts = {str(entry.get("name")): str(entry.get("expression")) for entry in objects_at(policy, "variables")}
        of = attributes.resource
        access = {"group": of.group, "resource": of.plural, "subresource": attributes.subresource}
        access["name"] = str(attributes.metadata.get("name") or "")
        values: dict[str, Value] = {
            "object": plain(attributes.object),
            "oldObject": plain(attributes.old),
            "request": plain(attributes.as_request()),
            "params": plain(params),
            "namespaceObject": plain(None if of.name == "Namespace" else namespace),
            "authorizer": AuthorizerValue(attributes.may, request=access | {"namespace": attributes.namespace}),
        }
        self._scope = Variables(values, COST_LIMIT)
        values["variables"] = _LazyVariables(texts, self._scope)

    def value(self, text: str) -> Value:
        """Return the value of an expression. Raises AdmissionPolicyError."""
        program = _program(text)
        try:
            return program.evaluate(self._scope)
        except EvaluationError as error:
            raise AdmissionPolicyError(f"expression '{text}' resulted in error: {error}") from None

    def meets(self, conditions: list[Raw]) -> bool:
        """Return whether all match conditions are true; a false one outweighs errors. Raises AdmissionPolicyError."""
        return decided(conditions, lambda condition: self.value(str(condition.get("expression"))) is True, False)


class Policies:
    """The policies of a store, enforced on requests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate(self, attributes: AdmissionAttributes, warnings: list[str], audited: dict[str, str]) -> None:
        """Append the warnings of policies, and add their annotations of the audit Event.

        Raises StoreError if one of them denies the request.
        """
        denial: StoreError | None = None
        failures: list[Raw] = []
        for name, policy, binding in self._bound("ValidatingAdmissionPolicy", attributes):
            about = f"ValidatingAdmissionPolicy '{name}' with binding '{binding.name}'"
            actions = binding.spec.get("validationActions") or ["Deny"]
            for index, message, reason in self._violations(name, policy, binding, attributes, audited):
                if index is not None and "Warn" in actions:
                    warnings.append(f"Validation failed for {about}: {message}")
                if index is not None and "Audit" in actions:
                    where = {"policy": name, "binding": binding.name, "expressionIndex": index}
                    failures.append({"message": message, **where, "validationActions": actions})
                if index is None or "Deny" in actions:
                    denial = denial or _denial(attributes, f"{about} denied request: {message}", reason)
        if failures:
            audited["validation.policy.admission.k8s.io/validation_failure"] = json.dumps(
                failures, separators=(",", ":")
            )
        if denial is not None:
            raise denial

    def _violations(
        self, name: str, policy: Raw, binding: _Binding, attributes: AdmissionAttributes, audited: dict[str, str]
    ) -> Iterator[tuple[int | None, str, str]]:
        """Yield the index, the message and the reason of each violated validation.

        The index None is that of an audit annotation that cannot be evaluated; the others are added to ``audited``.
        """
        try:
            evaluation = self._evaluation(policy, binding, attributes)
        except AdmissionPolicyError as error:
            yield from _as_failure(policy, error, 0)
            return
        if evaluation is None:
            return
        for index, validation in enumerate(objects_at(policy, "validations")):
            text = str(validation.get("expression"))
            try:
                if evaluation.value(text) is True:
                    continue
            except AdmissionPolicyError as error:
                yield from _as_failure(policy, error, index)
                continue
            yield index, self._message(validation, evaluation, text), str(validation.get("reason") or "Invalid")
        for annotation in objects_at(policy, "auditAnnotations"):
            key = f"{name}/{annotation.get('key')}"
            try:
                value = evaluation.value(str(annotation.get("valueExpression")))
            except AdmissionPolicyError as error:
                yield from _as_failure(policy, error, None)
                continue
            # Several bindings or parameters may give several values.
            before = audited.get(key)
            if isinstance(value, str) and value[:_LONGEST_ANNOTATION] not in (before or "").split(", "):
                audited[key] = f"{before}, {value[:_LONGEST_ANNOTATION]}" if before else value[:_LONGEST_ANNOTATION]

    def _message(self, validation: Raw, evaluation: PolicyEvaluation, text: str) -> str:
        with suppress(AdmissionPolicyError):
            message = evaluation.value(str(validation.get("messageExpression") or "''"))
            if isinstance(message, str) and message.strip():
                return message.strip()
        return str(validation.get("message") or f"failed expression: {text.strip()}").strip()

    def mutated(self, attributes: AdmissionAttributes) -> Raw | None:
        """Return the object of a request as the mutating policies change it, None if none does. Raises StoreError.

        Policies that want it are evaluated again after a later one has changed the object.
        """
        before = attributes.object
        after: dict[int, Raw | None] = {}
        bound = [*enumerate(self._bound("MutatingAdmissionPolicy", attributes))]
        again = [each for each in bound if each[1][1].get("reinvocationPolicy") == "IfNeeded"]
        for index, (name, policy, binding) in (*bound, *again):
            if index in after and after[index] == attributes.object:
                continue
            about = f"MutatingAdmissionPolicy '{name}' with binding '{binding.name}'"
            try:
                evaluation = self._evaluation(policy, binding, attributes)
                if evaluation is None:
                    continue
                for mutation in objects_at(policy, "mutations"):
                    attributes = replace(attributes, object=self._applied(mutation, policy, binding, attributes))
            except AdmissionPolicyError as error:
                if policy.get("failurePolicy") != "Ignore":
                    raise _denial(attributes, f"{about} denied request: {error}", "Invalid") from None
            after[index] = attributes.object
        return attributes.object if attributes.object is not before else None

    def _applied(self, mutation: Raw, policy: Raw, binding: _Binding, attributes: AdmissionAttributes) -> Raw:
        """Return the object after a mutation. Raises AdmissionPolicyError."""
        raw = attributes.object or {}
        is_patch = mutation.get("patchType") == "JSONPatch"
        text = value_at(mutation, "jsonPatch" if is_patch else "applyConfiguration", "expression")
        evaluation = PolicyEvaluation(attributes, namespace_of(self._store, attributes), binding.params, policy)
        change = as_json(evaluation.value(str(text)))
        try:
            if is_patch:
                result = patching.json_patch(raw, change)
            else:
                typed = {**change, "apiVersion": raw["apiVersion"], "kind": raw["kind"]}
                checked_fields(self._store.resources, Request(**_APPLYING, key=attributes.key), typed)
                result = merged(raw, change, field_ownership.shape_of(self._store.resources, attributes.resource))
        except (StoreError, KeyMissingError) as error:
            raise AdmissionPolicyError(str(error)) from None
        if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
            raise AdmissionPolicyError("the mutation leaves no object with metadata")
        return result

    def _evaluation(self, policy: Raw, binding: _Binding, attributes: AdmissionAttributes) -> PolicyEvaluation | None:
        """Return a policy's evaluation; None if match conditions exclude the request. Raises AdmissionPolicyError."""
        evaluation = PolicyEvaluation(attributes, namespace_of(self._store, attributes), binding.params, policy)
        return evaluation if evaluation.meets(objects_at(policy, "matchConditions")) else None

    def _bound(self, kind: str, attributes: AdmissionAttributes) -> Iterator[tuple[str, Raw, _Binding]]:
        """Yield the policies that apply to a request, by name, each with each binding and parameter."""
        bindings = self._store.objects(f"{kind}Binding")
        for stored in self._store.objects(kind) if bindings else ():
            policy = object_at(stored.raw, "spec")
            if not matches(self._store, object_at(policy, "matchConstraints"), attributes):
                continue
            for bound in bindings:
                spec = object_at(bound.raw, "spec")
                # A binding may narrow down what its policy matches.
                rules, is_own = object_at(spec, "matchResources"), spec.get("policyName") == stored.key
                if is_own and matches(self._store, rules, attributes):
                    for params in self._params(policy, spec, attributes):
                        yield stored.key, policy, _Binding(bound.key, spec, params)

    def _params(self, policy: Raw, spec: Raw, attributes: AdmissionAttributes) -> list[Raw | None]:
        """Return the parameters of a binding; [None] if it has none. Raises StoreError if none is found, by default."""
        kind, reference = policy.get("paramKind"), spec.get("paramRef")
        if not kind or not reference:
            return [None]
        try:
            resource = self._store.resources.of({"apiVersion": kind.get("apiVersion"), "kind": kind.get("kind")})
        except StoreError:
            problem = f"failed to configure policy: failed to find resource referenced by paramKind: {shown(kind)}"
            raise _denial(attributes, problem, "Invalid") from None
        namespace = str(reference.get("namespace") or attributes.namespace) if resource.namespaced else ""
        if resource.namespaced and not namespace:
            problem = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise _denial(attributes, f"failed to configure binding: {problem}", "Invalid")
        if reference.get("name"):
            name = str(reference["name"])
            stored = self._store.find(resource.name, f"{namespace}/{name}" if namespace else name)
            found: list[Raw | None] = [] if stored is None else [stored.raw]
        else:
            selector, known = reference.get("selector") or {}, self._store.objects(resource.name, namespace)
            found = [stored.raw for stored in known if selects(selector, stored.object.metadata.labels)]
        may_lack = reference.get("parameterNotFoundAction") == "Allow" or policy.get("failurePolicy") == "Ignore"
        if not found and not may_lack:
            problem = "no params found for policy binding with `Deny` parameterNotFoundAction"
            raise _denial(attributes, f"failed to configure binding: {problem}", "Invalid")
        return found


def _as_failure(policy: Raw, error: AdmissionPolicyError, index: int | None) -> Iterator[tuple[int | None, str, str]]:
    if policy.get("failurePolicy") != "Ignore":
        yield index, str(error), "Invalid"


def _denial(attributes: AdmissionAttributes, message: str, reason: str) -> StoreError:
    """Return the refusal of a request by a policy."""
    refused = forbidden(attributes.resource, attributes.key, message)
    details = {**refused.details, "causes": [{"message": message}]}
    return StoreError(_CODES.get(reason, 422), reason, refused.message, details, refused.status_message)


CONFIGURING = (
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
)
"""The kinds whose objects switch admission on."""

_SCOPES = {True: "Namespaced", False: "Cluster"}
EXEMPT = frozenset(
    {
        *CONFIGURING,
        "MutatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "TokenReview",
        "SubjectAccessReview",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
    }
)
"""The kinds about whose objects no policy and no webhook is asked: those that configure admission, and reviews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionAttributes:
    """A request as admission sees it: the object that it writes, the one before, and the user.

    `object` is None for deletions, `old` for creations. `operation` is CREATE, UPDATE, DELETE or CONNECT.
    """

    operation: str
    resource: api_resources.APIResource
    api_version: str
    subresource: str = ""
    object: Raw | None = None
    old: Raw | None = None
    user: authorization.User
    dry_run: bool = False
    authorizer: authorization.Authorizer | None = None

    @property
    def metadata(self) -> Raw:
        return object_at(self.old if self.object is None else self.object, "metadata")

    @property
    def namespace(self) -> str:
        """The namespace of the object, "" for none."""
        return str(self.metadata.get("namespace") or "default") if self.resource.namespaced else ""

    @property
    def key(self) -> str:
        return key_of(self.metadata) if self.metadata.get("name") else ""

    def may(self, account: str, parts: Mapping[str, str]) -> bool:
        """Return whether the user, or a service account (`namespace:name`), may do what `parts` say."""
        user = self.user
        if account:
            name = f"{authorization.ACCOUNT}{account}"
            user = authorization.User(name, (*authorization.groups_of(name), authorization.AUTHENTICATED))
        return self.authorizer is None or self.authorizer.allows(user, authorization.Attributes(**parts))

    def as_request(self) -> Raw:
        """Return the request as policies and webhooks see it."""
        group, _, version = self.api_version.rpartition("/")
        kind = {"group": group, "version": version, "kind": self.resource.kind}
        if self.subresource == api_resources.SCALE.name:
            kind = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        resource = {"group": group, "version": version, "resource": self.resource.plural}
        parts = {"subResource": self.subresource, "requestSubResource": self.subresource}
        options = {"kind": f"{self.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
        named = {**parts, "name": self.metadata.get("name"), "namespace": self.namespace}
        return {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            **{name: value for name, value in named.items() if value},
            "operation": self.operation,
            "userInfo": self.user.to_dict(),
            "dryRun": self.dry_run,
            "options": {**options, "dryRun": ["All"]} if self.dry_run else options,
        }


def matches(store: Store, rules: Raw, attributes: AdmissionAttributes, *, listed: str = "resourceRules") -> bool:
    """Return whether the rules and selectors of a policy, a binding (MatchResources) or a webhook apply to a request.

    Only a binding may have none of the listed rules; it then applies to all that its policy matches.
    """

    def are_met(field: str) -> bool:
        found: Iterable[Raw] = rules.get(field) or ()
        return any(_rule_matches(rule, attributes, rules.get("matchPolicy") != "Exact") for rule in found)

    is_listed = are_met(listed) or (listed == "resourceRules" and not rules.get(listed))
    if not is_listed or are_met("excludeResourceRules"):
        return False
    namespaces = rules.get("namespaceSelector")
    if namespaces and (attributes.namespace or attributes.resource.name == "Namespace"):
        namespace = namespace_of(store, attributes)
        if not selects(namespaces, object_at(namespace, "metadata", "labels")):
            return False
    objects = rules.get("objectSelector")
    versions = (raw for raw in (attributes.object, attributes.old) if raw is not None)
    return not objects or any(selects(objects, object_at(raw, "metadata", "labels")) for raw in versions)


def namespace_of(store: Store, attributes: AdmissionAttributes) -> Raw | None:
    """Return the namespace of a request's object, None for cluster-scoped objects."""
    if attributes.resource.name == "Namespace":
        return attributes.object or attributes.old
    stored = store.find("Namespace", attributes.namespace) if attributes.namespace else None
    return None if stored is None else stored.raw


def selects(selector: Raw, labels: Mapping[str, Any]) -> bool:
    """Return whether a label selector in wire form matches labels."""
    return compile_label_selector(read(selector, LabelSelector)).matches({**labels})


def _rule_matches(rule: Raw, attributes: AdmissionAttributes, is_equivalent: bool) -> bool:
    resource = attributes.resource
    if not lists(rule, "operations", attributes.operation):
        return False
    # A namespace also counts as an object in itself.
    scopes = ("Namespaced", "Cluster") if resource.name == "Namespace" else (_SCOPES[resource.namespaced],)
    if (rule.get("scope") or "*") not in ("*", *scopes):
        return False
    versions = {attributes.api_version, *(resource.served_versions if is_equivalent else ())}
    parts = (version.rpartition("/") for version in versions)
    if not any(lists(rule, "apiGroups", group) and lists(rule, "apiVersions", version) for group, _, version in parts):
        return False
    names = rule.get("resourceNames")
    if names and attributes.metadata.get("name") not in names:
        return False
    plural, part = resource.plural, attributes.subresource
    wanted = {f"{plural}/{part}", f"{plural}/*", f"*/{part}", "*/*"} if part else {plural, "*", "*/*"}
    return bool(wanted & {*(rule.get("resources") or ())})
