"""Validation of whole objects: with the rules of kube-apiserver, and with those on which Podium relies.

kube-apiserver's rules are those of Kubernetes' validation packages (pkg/apis/*/validation), applied to the object with
its defaults; the other modules of this package state them by type. This one has those for metadata (apimachinery,
pkg/api/validation/objectmeta.go), and for kinds with few rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podium.api import checks
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError
from podium.api.kinds import KIND_OF, SERVED_KINDS, group_of
from podium.api.meta import Kubernetes, Raw
from podium.api.names import label_name_problem, name_rule, subdomain_problem
from podium.api.pod import MIRROR_ANNOTATION
from podium.api.policy import POLICY_ANNOTATION
from podium.api.schemas.schema import bytes_of, fields_of, schema_of
from podium.api.validation import containers, devices, rules, volumes, workloads  # noqa: F401 - these modules declare rules
from podium.api.validation.findings import Finding, Findings, Place, too_long
from podium.api.validation.pods import DELETION_COST
from podium.api.validation.policies import check_disruption_policy
from podium.api.validation.rules import check_usable

if TYPE_CHECKING:
    from podium.api.cel.compiler import Declaration

# With this module, the rules of all types are known.
__all__ = ["check_usable"]

ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
"""The annotation of a token Secret that names the service account."""

JUDGED_ANNOTATIONS = frozenset((MIRROR_ANNOTATION, POLICY_ANNOTATION, DELETION_COST))
"""The pod annotations whose values are validated, or cause warnings (`podium.api.objects`)."""

_MAX_BYTES = 1024 * 1024
_OF_BALANCERS = ("loadBalancerSourceRanges", "loadBalancerClass", "allocateLoadBalancerNodePorts")
_NOT_IN_PATHS, _NOT_AT_END = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")

rules.declare(
    """\
ApplyConfiguration JSONPatch: expression!
AuditAnnotation: key!:key valueExpression!
ClusterRole Role: rules
ClusterRoleBinding RoleBinding: subjects roleRef
ClientIPConfig: timeoutSeconds:1..86400
ConfigMap: @config_map
CSINode: spec
CSINodeDriver: name!:subdomain-in-any-case nodeID! allocatable topologyKeys:key##
CSINodeSpec: drivers##name
Event: @event_namespace
EventSource: component:unset host:unset
Endpoint: addresses! addresses:..100 hostname:label
EndpointSlice: addressType!:FQDN|IPv4|IPv6 endpoints:..1000 endpoints @slice_addresses
events.k8s.io/v1.Event: eventTime! type!:Normal|Warning series deprecatedSource deprecatedFirstTimestamp:unset
  deprecatedLastTimestamp:unset deprecatedCount:..0 reportingController!:key reportingInstance! action! reason!
events.k8s.io/v1.EventSeries: count!:2.. lastObservedTime!
HTTPIngressPath: pathType!:Exact|ImplementationSpecific|Prefix @ingress_path backend+
HTTPIngressRuleValue: paths!
Ingress NetworkPolicy: spec
IngressBackend: ^resource|service @ingress_backend service
IngressClassParametersReference: apiGroup:subdomain kind! name! scope:Cluster|Namespace
IngressClassSpec: controller! controller:domain-path parameters
IngressRule: host:host http
IngressServiceBackend: name! name:label
IngressSpec: @ingress ingressClassName:subdomain defaultBackend tls rules
IngressTLS: hosts:host-pattern secretName:subdomain
IPAddress IngressClass Lease ServiceCIDR: spec+
IPAddressSpec: parentRef!
IPBlock: cidr!:cidr except:cidr
MatchCondition: name!:key expression!
MatchResources: matchPolicy:Equivalent|Exact namespaceSelector objectSelector resourceRules excludeResourceRules
MutatingAdmissionPolicy ValidatingAdmissionPolicy: spec
MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding: spec+
MutatingAdmissionPolicyBindingSpec ValidatingAdmissionPolicyBindingSpec: policyName!:subdomain paramRef matchResources
MutatingAdmissionPolicySpec: reinvocationPolicy!:IfNeeded|Never mutations!
MutatingAdmissionPolicySpec ValidatingAdmissionPolicySpec: paramKind matchConstraints+ @policy
  failurePolicy:Fail|Ignore matchConditions:..64 matchConditions##name variables @expressions
MutatingWebhook: reinvocationPolicy:IfNeeded|Never
MutatingWebhook ValidatingWebhook: name!:webhook-name rules failurePolicy:Fail|Ignore matchPolicy:Equivalent|Exact
  sideEffects!:None|NoneOnDryRun timeoutSeconds:1..30 namespaceSelector objectSelector clientConfig+
  matchConditions:..64 matchConditions##name @expressions admissionReviewVersions!:version-name
  admissionReviewVersions## @review_versions
MutatingWebhookConfiguration ValidatingWebhookConfiguration: webhooks##name
Mutation: patchType!:ApplyConfiguration|JSONPatch =applyConfiguration|jsonPatch applyConfiguration jsonPatch
NamedRuleWithOperations: resourceNames##
NamedRuleWithOperations RuleWithOperations: operations! apiGroups! apiVersions! resources! @wildcards
Namespace:
NetworkPolicyEgressRule: ports to
NetworkPolicyIngressRule: ports from
NetworkPolicyPeer: @peer podSelector namespaceSelector ipBlock
NetworkPolicyPort: protocol:SCTP|TCP|UDP port:port-or-name endPort:port
NetworkPolicySpec: podSelector ingress egress policyTypes:Egress|Ingress
Node: spec status
NodePodPreemptionPolicy: disableResizePreemption:..20 disableResizePreemption:key
NodeSpec: taints podCIDRs:cidr @node podPreemptionPolicy
NodeStatus: capacity:amounts* allocatable:amounts*
ObjectMeta: generation:0.. deletionGracePeriodSeconds:0.. labels:labels @check_annotations ownerReferences @controllers
  finalizers:key
Overhead: podFixed:container-amounts*
OwnerReference: @owner
LeaseSpec: leaseDurationSeconds:1.. leaseTransitions:0..
ParamKind: apiVersion!:group-version kind!:label-in-any-case
ParamRef: @one_way selector parameterNotFoundAction!:Allow|Deny
ParentReference: resource! name!
PolicyRule: verbs! @policy_rule
RoleRef: kind!:ClusterRole|Role name!
RuntimeClass: handler!:label overhead scheduling
Scheduling: nodeSelector:labels tolerations
Secret: @secret
Service: spec+
ServiceCIDRSpec: cidrs! cidrs:canonical-cidr
ServicePort: port::port protocol:SCTP|TCP|UDP targetPort:port-or-name appProtocol:key
SessionAffinityConfig: clientIP
ServiceReference: namespace! name! path:service-path port:port
ServiceSpec: type:ClusterIP|ExternalName|LoadBalancer|NodePort @addresses @port_numbers ports selector:labels
  sessionAffinity:ClientIP|None sessionAffinityConfig externalIPs:ip loadBalancerSourceRanges:cidr @source_ranges
  ipFamilies:IPv4|IPv6 ipFamilies## ipFamilyPolicy:SingleStack|PreferDualStack|RequireDualStack loadBalancerClass:key
  externalTrafficPolicy:Cluster|Local internalTrafficPolicy:Cluster|Local
  trafficDistribution:PreferClose|PreferSameNode|PreferSameZone
Subject: kind!:Group|ServiceAccount|User name! @subject
Taint: key::key value:value effect!:NoSchedule|PreferNoSchedule|NoExecute
ValidatingAdmissionPolicyBindingSpec: validationActions!:Audit|Deny|Warn validationActions## @actions
ValidatingAdmissionPolicySpec: validations auditAnnotations:..20 auditAnnotations##key
Validation: expression! message:line reason:Forbidden|Invalid|RequestEntityTooLarge|Unauthorized
Variable: name!:cel-name expression!
VolumeNodeResources: count:0..*
WebhookClientConfig: =url|service url:https-url service
""",
    """\
NodeSpec: taints:..1000
Scheduling: tolerations:..1000
""",
)


def find_problems(raw: Raw, custom: bool | None = None) -> tuple[Finding, ...]:
    """Return the problems for which kube-apiserver would refuse the object; none for kinds without rules.

    For custom kinds and other kinds without a reading, only the metadata is checked: `custom` says whether they are
    namespaced, None means that the kind is not such a kind. An object with a uid comes from a cluster: rules for new
    objects do not apply. Admission checks references to other objects.
    """
    version, name = raw.get("apiVersion"), raw.get("kind")
    if not isinstance(version, str) or not isinstance(name, str):
        return ()
    group = group_of(version)
    schema = schema_of(group, name)
    type_ = "" if schema is None or not rules.has_rules(schema.name) else schema.name
    if not type_ and custom is None:
        return ()
    findings = Findings()
    place = Place(raw, findings)
    namespaced = SERVED_KINDS[group, name].namespaced if type_ else bool(custom)
    metadata = place.child_or_empty("metadata")
    check_metadata(metadata, namespaced, name_rule(group, name))
    if (group, name) in SERVED_KINDS:
        check_finalizers(metadata)
    if type_:
        rules.check_type(place, type_)
    return tuple(dict.fromkeys(findings))


def find_version_problems(raw: Raw, previous: Raw | None) -> list[Finding]:
    """Return what is wrong in a version that is not stored, with a new object or with one in place of `previous`."""
    type_, findings, known = f"{raw['apiVersion']}.{raw['kind']}", Findings(), Findings()
    rules.check_type(Place(raw, findings), type_)
    if previous is not None:
        rules.check_type(Place(previous, known), type_)
        for name, field in fields_of(type_).items():
            if field.is_immutable and (raw.get(name) or None) != (previous.get(name) or None):
                Place(raw, findings).invalid(name, raw.get(name), "field is immutable")
    return [finding for finding in findings if finding not in known]


def check_metadata(metadata: Place, namespaced: bool, rule: Callable[[str], str | None] = subdomain_problem) -> None:
    """Check the name by its rule, the namespace, labels, annotations and owners, and the syntax of finalizers."""
    name, namespace = metadata.text("name"), metadata.text("namespace")
    if name:
        metadata.check("name", rule(name))
    elif not metadata.text("generateName"):
        metadata.required("name", "name or generateName is required")
    if namespaced and namespace:
        metadata.check("namespace", label_name_problem(namespace))
    elif namespace:
        metadata.forbidden("namespace", "not allowed on this type")
    rules.check_type(metadata, "ObjectMeta")


def is_unqualified_finalizer(finalizer: str) -> bool:
    """Return whether a finalizer has no domain and is none of Kubernetes' own."""
    return "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion")


def check_finalizers(metadata: Place) -> None:
    """Check that finalizers are qualified; objects of custom kinds may have others."""
    for text in metadata.texts("finalizers"):
        if is_unqualified_finalizer(text.value):
            text.invalid("", text.value, "name is neither a standard finalizer name nor is it fully qualified")


def validate(value: Kubernetes, raw: Raw) -> None:
    """Raise InputError, with the field's path, for an object that cannot be processed; `value` is its reading.

    Objects are checked individually: admission checks references to other objects.
    """
    kind = KIND_OF[type(value)]
    refuse_metadata(value, kind.namespaced)
    if isinstance(value, DisruptionPolicy):
        check_disruption_policy(value)
    else:
        check_usable(Place(raw, Findings()), kind.name)


def refuse_metadata(value: Kubernetes, namespaced: bool) -> None:
    """Raise InputError for the metadata of an object of any kind; `namespaced` says whether its kind is namespaced."""
    metadata = value.metadata
    if not metadata.name:
        raise InputError(
            "is missing; objects are known by their names, so that generateName is not enough", path=".metadata.name"
        )
    checks.check(name_rule(group_of(value.api_version), value.kind)(metadata.name), ".metadata.name")
    if namespaced:
        checks.check(label_name_problem(metadata.namespace), ".metadata.namespace")
    elif metadata.namespace:
        raise InputError(f"a {value.kind} is in no namespace; remove it", path=".metadata.namespace")
    checks.check_annotations(metadata.annotations, ".metadata.annotations")
    checks.check_time(metadata.creation_timestamp, ".metadata.creationTimestamp")
    checks.check_time(metadata.deletion_timestamp, ".metadata.deletionTimestamp")
    checks.check_not_negative(metadata.deletion_grace_period_seconds, ".metadata.deletionGracePeriodSeconds")


@rules.check
def _review_versions(webhook: Place) -> None:
    versions = [text.value for text in webhook.texts("admissionReviewVersions")]
    if versions and not {"v1", "v1beta1"} & {*versions}:
        webhook.invalid("admissionReviewVersions", versions, "must include at least one of v1, v1beta1")


@rules.check
def _wildcards(rule: Place) -> None:
    """Check the operations and the scope of a rule, and that wildcards stand alone."""
    rules.check_all(rule, "operations", ("*", "CONNECT", "CREATE", "DELETE", "UPDATE"))
    rules.check_alternatives(rule, "scope", ("*", "Cluster", "Namespaced"))
    for name in ("operations", "apiGroups", "apiVersions"):
        values = [text.value for text in rule.texts(name)]
        if "*" in values and len(values) > 1:
            rule.invalid(name, values, f"if '*' is present, must not specify other {name}")
    resources = [text.value for text in rule.texts("resources")]
    plain = [name for name in resources if "/" not in name]
    if "*/*" in resources and len(resources) > 1:
        rule.invalid("resources", resources, "if '*/*' is present, must not specify other resources")
    if "*" in plain and plain[-1] != "*":
        problem = "if '*' is present, must not specify other resources without subresources"
        rule.invalid("resources", resources, problem)
    for index, text in enumerate(rule.texts("resources")):
        resource, slash, part = text.value.partition("/")
        for other in (f"{resource}/*", f"*/{part}"):
            if slash and other in resources[:index]:
                text.invalid("", text.value, f"if '{other}' is present, must not specify {text.value}")


@rules.check
def _one_way(reference: Place) -> None:
    given = [name for name in ("name", "selector") if reference.value.get(name) not in (None, "")]
    if not given:
        reference.required("", "one of name or selector must be specified")
    for name in given if len(given) > 1 else ():
        reference.forbidden(name, "name and selector are mutually exclusive")


@rules.check
def _actions(spec: Place) -> None:
    actions = [text.value for text in spec.texts("validationActions")]
    if {"Deny", "Warn"} <= {*actions}:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        spec.invalid("validationActions", actions, f"must not contain both Deny and Warn ({why})")


@rules.check
def _policy(spec: Place) -> None:
    spec.child_or_empty("matchConstraints").require("resourceRules")
    if not spec.has("mutations") and not spec.value.get("validations") and not spec.value.get("auditAnnotations"):
        spec.required("validations", "validations or auditAnnotations must contain at least one item")


# The lists of webhooks and policies whose items have an expression, its path, and the types of its result.
_EXPRESSIONS = """
matchConditions expression bool
variables expression
validations expression bool
validations messageExpression string
auditAnnotations valueExpression string null_type
mutations applyConfiguration.expression map object
mutations jsonPatch.expression list
"""


def policy_variables() -> dict[str, Declaration]:
    """Return the variables that expressions of webhooks and policies may use."""
    from podium.api.cel import access, compiler, values  # noqa: PLC0415 - few objects have expressions

    names = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
    authorizer = compiler.Declaration(access.AUTHORIZER, {"requestResource": compiler.Declaration(access.RESOURCE)})
    return dict.fromkeys(names, compiler.Declaration(values.DYN)) | {"authorizer": authorizer}


@rules.check
def _expressions(holder: Place) -> None:
    """Check that expressions compile, with the variables before them, and the types of their results if known."""
    from podium.api.cel import compiler, syntax, values  # noqa: PLC0415 - few objects have expressions

    variables: dict[str, Declaration] = {}
    declared = policy_variables() | {"variables": compiler.Declaration("object", variables)}
    if not holder.has("paramKind"):
        del declared["params"]
    for listed, path, *types in map(str.split, _EXPRESSIONS.strip().splitlines()):
        for entry in holder.objects(listed):
            *way, name = path.split(".")
            place, type_ = entry.child_or_empty(*way), values.DYN
            text = place.text(name)
            try:
                if text:
                    type_ = compiler.Compiler(text, declared).compile(syntax.parse(text)).type
            except (values.CompileError, RecursionError) as error:
                place.invalid(name, text, f"compilation failed: {error}")
            if types and type_ not in (*types, values.DYN):
                place.invalid(name, text, f"must evaluate to {' or '.join(types)}")
            if listed == "variables":
                variables[entry.text("name")] = compiler.Declaration(type_)


@rules.check
def _event_namespace(event: Place) -> None:
    """Check that an Event is in the namespace of its object, or in a system namespace if the object has none."""
    own, about = event.child_or_empty("metadata").text("namespace", "default"), event.child_or_empty("involvedObject")
    namespace = about.text("namespace")
    is_right = own == (namespace or "default")
    if event.value.get("eventTime"):
        is_right = bool(namespace) or own in ("default", "kube-system")
    if not is_right:
        about.invalid("namespace", namespace, "does not match event.namespace")


@rules.check
def _owner(owner: Place) -> None:
    version, kind = owner.text("apiVersion"), owner.text("kind")
    if not version:
        owner.invalid("apiVersion", version, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not owner.text(name):
            owner.invalid(name, "", "must not be empty")
    if (version, kind) == ("v1", "Event"):
        owner.invalid("", f"{version} {kind}", "is disallowed from being an owner")


@rules.check
def _controllers(metadata: Place) -> None:
    owners = metadata.objects("ownerReferences")
    controllers = [f"{owner.text('kind')}/{owner.text('name')}" for owner in owners if owner.flag("controller")]
    if len(controllers) > 1:
        detail = "Only one reference can have Controller set to true"
        metadata.invalid("ownerReferences", ", ".join(controllers[:2]), detail)


@rules.check
def _config_map(config_map: Place) -> None:
    """Check the keys of text and binary data, which must be disjoint, and the total size."""
    text, encoded = config_map.text_mapping("data"), config_map.text_mapping("binaryData")
    _check_keys(config_map, "data", text)
    _check_keys(config_map, "binaryData", encoded)
    for key in sorted(text.keys() & encoded.keys()):
        config_map.child_or_empty("data").invalid(key, key, "duplicate of key present in binaryData")
    size = sum(len(value.encode()) for value in text.values()) + sum(len(_bytes(value)) for value in encoded.values())
    if size > _MAX_BYTES:
        config_map.report(too_long("", _MAX_BYTES))


@rules.check
def _secret(secret: Place) -> None:
    """Check the keys of the data, their size, and the required content for the Secret's type."""
    values, data, type_ = secret.text_mapping("data"), secret.child_or_empty("data"), secret.text("type")
    _check_keys(secret, "data", values)
    if sum(len(_bytes(value)) for value in values.values()) > _MAX_BYTES:
        secret.report(too_long(secret.path("data"), _MAX_BYTES))
    for key in _REQUIRED_KEYS.get(type_, ()):
        if not data.has(key):
            data.required(key)
    if type_ == "kubernetes.io/basic-auth" and not data.fields_set("username", "password"):
        data.required("username")
        data.required("password")
    if type_ == "kubernetes.io/service-account-token":
        secret.child_or_empty("metadata", "annotations").require(ACCOUNT_ANNOTATION)
    for key in _REQUIRED_KEYS.get(type_, ()) if type_.startswith("kubernetes.io/dockerc") else ():
        try:
            json.loads(_bytes(values.get(key, "e30=")))
        except (ValueError, RecursionError):
            # The value is secret, so it is not shown.
            data.invalid(key, "<secret contents redacted>", "is no JSON")


_REQUIRED_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _check_keys(place: Place, name: str, values: Mapping[str, str]) -> None:
    for key in values:
        place.child_or_empty(name).check(key, rules.config_key_problem(key))


def _bytes(encoded: str) -> bytes:
    try:
        return bytes_of(encoded)
    except ValueError:
        return b""


@rules.check
def _node(spec: Place) -> None:
    rules.report_repeats(spec.objects("taints"), "", lambda taint: f"{taint.text('key')}:{taint.text('effect')}")
    blocks = spec.texts("podCIDRs")
    if len(blocks) != len({":" in block.value for block in blocks}):
        spec.invalid("podCIDRs", [], "may specify no more than one CIDR for each IP family")


@rules.check
def _addresses(spec: Place) -> None:
    """Check the addresses of a service, and that it has ports, or an external name."""
    type_, is_headless = spec.text("type", "ClusterIP"), spec.text("clusterIP") == "None"
    for address in spec.texts("clusterIPs"):
        address.check("", None if address.value == "None" else rules.FORMATS["ip"](address.value))
    if spec.texts("clusterIPs") and spec.value["clusterIPs"][0] != spec.text("clusterIP"):
        spec.invalid("clusterIPs", spec.value["clusterIPs"], "first value must match `clusterIP`")
    if type_ == "ExternalName":
        name = spec.text("externalName").removesuffix(".")
        if name:
            spec.check("externalName", subdomain_problem(name))
        else:
            spec.required("externalName")
        if spec.text("clusterIP"):
            spec.forbidden("clusterIPs", "may not be set for ExternalName services")
    elif not is_headless and not spec.objects("ports"):
        spec.required("ports")
    if is_headless and type_ in ("LoadBalancer", "NodePort"):
        spec.invalid("clusterIP", "None", f"may not be set to 'None' for {type_} services")


@rules.check
def _port_numbers(spec: Place) -> None:
    """Check the names of ports, and that no two have the same number."""
    type_, ports = spec.text("type", "ClusterIP"), spec.objects("ports")
    names: set[str] = set()
    on_nodes: set[tuple[str, int]] = set()
    for port in ports:
        if port.text("name") or len(ports) > 1:
            rules.check_own_name(port, names)
        protocol, on_node = port.text("protocol", "TCP"), port.number("nodePort")
        if on_node and type_ == "ClusterIP":
            port.forbidden("nodePort", "may not be used when `type` is 'ClusterIP'")
        elif on_node and (protocol, on_node) in on_nodes:
            port.duplicate("nodePort", on_node)
        on_nodes.add((protocol, on_node or 0))
    rules.report_repeats(ports, "", lambda port: f"{port.text('protocol', 'TCP')}/{port.number('port') or 0}")


@rules.check
def _source_ranges(spec: Place) -> None:
    """Check the fields that only services of some types have (validateServiceExternalTrafficPolicy)."""
    type_, policy, port = spec.text("type", "ClusterIP"), spec.text("externalTrafficPolicy"), "healthCheckNodePort"
    for name in () if type_ == "LoadBalancer" else spec.fields_set(*_OF_BALANCERS):
        spec.forbidden(name, "may only be used when `type` is 'LoadBalancer'")
    if (
        policy
        and type_ not in ("LoadBalancer", "NodePort")
        and not (type_ == "ClusterIP" and spec.texts("externalIPs"))
    ):
        spec.invalid("externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    if (number := spec.number(port)) and (type_, policy) != ("LoadBalancer", "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        spec.invalid(port, number, detail)
    if spec.has("sessionAffinityConfig") and spec.text("sessionAffinity", "None") == "None":
        spec.forbidden("sessionAffinityConfig", "must not be set when session affinity is None")


@rules.check
def _slice_addresses(slice_: Place) -> None:
    """Check that the addresses are of the slice's type, and that ports have distinct names (ValidateEndpointSlice)."""
    type_ = slice_.text("addressType")
    for address in (one for endpoint in slice_.objects("endpoints") for one in endpoint.texts("addresses")):
        if type_ == "FQDN":
            address.check("", subdomain_problem(address.value))
        elif rules.FORMATS["ip"](address.value) is not None or (":" in address.value) is not (type_ == "IPv6"):
            address.invalid("", address.value, f"must be a valid {type_} address")
    rules.report_repeats(slice_.objects("ports"), "name")


@rules.check
def _policy_rule(rule: Place) -> None:
    """Check that a rule is about resources of groups, or in a ClusterRole about URLs instead (ValidatePolicyRule)."""
    urls = rule.value.get("nonResourceURLs")
    if urls and rule.owner.text("kind") == "Role":
        rule.invalid("nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
    if urls and rule.fields_set("apiGroups", "resources", "resourceNames"):
        rule.invalid("nonResourceURLs", urls, "rules cannot apply to both regular resources and non-resource URLs")
    for name, what in () if urls else (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.value.get(name):
            rule.required(name, f"resource rules must supply at least one {what}")


@rules.check
def _subject(subject: Place) -> None:
    needs_namespace = subject.text("kind") == "ServiceAccount" and subject.owner.text("kind") == "ClusterRoleBinding"
    if needs_namespace and not subject.text("namespace"):
        subject.required("namespace")


@rules.check
def _ingress(spec: Place) -> None:
    if not spec.has("defaultBackend") and not spec.entries("rules"):
        spec.invalid("", None, "either `defaultBackend` or `rules` must be specified")


@rules.check
def _ingress_path(place: Place) -> None:
    type_, path = place.text("pathType"), place.text("path")
    is_matched = type_ in ("Exact", "Prefix") or (type_ == "ImplementationSpecific" and path)
    if is_matched and not path.startswith("/"):
        place.invalid("path", path, "must be an absolute path")
    if type_ in ("Exact", "Prefix"):
        problems = [f"must not contain '{part}'" for part in _NOT_IN_PATHS if part in path]
        problems += [f"cannot end with '{part}'" for part in _NOT_AT_END if path.endswith(part)]
        for problem in problems:
            place.invalid("path", path, problem)


@rules.check
def _ingress_backend(backend: Place) -> None:
    service = backend.child("service")
    if service is not None and not backend.has("resource"):
        port = service.child_or_empty("port")
        given = [field for field in ("name", "number") if port.value.get(field)]
        if len(given) == 1:
            rules.check_port(port, given[0])
        elif given:
            backend.invalid("", "", "cannot set both port name & port number")
        else:
            backend.required("", "port name or number is required")


@rules.check
def _peer(peer: Place) -> None:
    selects = peer.has("podSelector") or peer.has("namespaceSelector")
    if not (selects or peer.has("ipBlock")):
        peer.required("", "must specify a peer")
    elif selects and peer.has("ipBlock"):
        peer.forbidden("", "may not specify both ipBlock and another peer")
