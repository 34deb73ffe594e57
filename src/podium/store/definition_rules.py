"""The rules for definitions of custom kinds (apiextensions-apiserver, pkg/apis/apiextensions/validation)."""

from __future__ import annotations

from podium.api.meta import Raw, value_at
from podium.api.structural.soundness import find_schema_problems
from podium.api.validation import rules
from podium.api.validation.findings import Findings, Place, required
from podium.store.custom_conversion import REVIEW_VERSIONS

APPROVED = "api-approved.kubernetes.io"
"""The annotation that definitions in Kubernetes' own API groups must have."""

_IMMUTABLE = (("group",), ("scope",), ("names", "kind"), ("names", "plural"))

rules.declare("""\
CustomResourceColumnDefinition: jsonPath! name! type! type:boolean|date|integer|number|string
CustomResourceConversion: strategy:None|Webhook @conversion
CustomResourceDefinitionNames: plural!:label-in-any-case singular:label-in-any-case kind!:label-in-any-case
  listKind:label-in-any-case shortNames:label categories:label @definition_names
CustomResourceDefinitionSpec: group!:domain names+ scope! scope:Cluster|Namespaced conversion versions!##name @versions
CustomResourceDefinitionVersion: name::version-name @version additionalPrinterColumns selectableFields:..8
  selectableFields subresources
CustomResourceSubresourceScale: specReplicasPath!:spec-path statusReplicasPath!:status-path labelSelectorPath:field-path
CustomResourceSubresources: scale
SelectableField: jsonPath!:field-path
""")


def find_definition_problems(raw: Raw, previous: Raw | None) -> Findings:
    """Return the problems of a definition that is created, or that replaces `previous`."""
    found = Findings()
    whole = Place(raw, found)
    spec = whole.child("spec")
    if spec is None:
        whole.required("spec")
        return found
    rules.check_type(spec, "CustomResourceDefinitionSpec")
    group, plural = spec.text("group"), spec.child_or_empty("names").text("plural")
    metadata = whole.child_or_empty("metadata")
    if plural and group and metadata.text("name") != f"{plural}.{group}":
        metadata.invalid("name", metadata.text("name"), 'must be spec.names.plural+"."+spec.group')
    is_protected = any(group == domain or group.endswith(f".{domain}") for domain in ("k8s.io", "kubernetes.io"))
    annotations = metadata.child_or_empty("annotations")
    if is_protected and not annotations.value.get(APPROVED):
        detail = f'protected groups must have approval annotation "{APPROVED}"'
        detail += ", see https://github.com/kubernetes/enhancements/pull/1111"
        metadata.report(required(f"{metadata.path('annotations')}[{APPROVED}]", detail))
    for path in _IMMUTABLE if previous is not None else ():
        new = value_at(raw["spec"], *path)
        if new != value_at(previous, "spec", *path):
            spec.child_or_empty(*path[:-1]).invalid(path[-1], new, "field is immutable")
    return found


@rules.check
def _definition_names(names: Place) -> None:
    if names.text("kind") and names.text("kind") == names.text("listKind"):
        names.invalid("listKind", names.text("listKind"), "kind and listKind may not be the same")


@rules.check
def _conversion(conversion: Place) -> None:
    """Check a webhook, which upstream's findings place under the names of its internal type."""
    hook = conversion.child_or_empty("webhook")
    config, versions = hook.child_or_empty("clientConfig"), [of.value for of in hook.texts("conversionReviewVersions")]
    at, listed, is_webhook = "webhookClientConfig", "conversionReviewVersions", conversion.text("strategy") == "Webhook"
    if not is_webhook:
        for name in (*((at,) if config.value else ()), *((listed,) if versions else ())):
            conversion.forbidden(name, "should not be set when strategy is not set to Webhook")
        return
    if not config.value:
        conversion.required(at, "required when strategy is set to Webhook")
    elif bool(config.text("url")) == bool(config.child("service")):
        conversion.required(at, "exactly one of url or service is required")
    elif config.text("url") and not config.text("url").startswith("https://"):
        conversion.child_or_empty(at).invalid("url", config.text("url"), "'https' is the only allowed URL scheme")
    if not versions:
        conversion.required(listed)
    elif not set(versions) & set(REVIEW_VERSIONS):
        conversion.invalid(listed, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


@rules.check
def _versions(spec: Place) -> None:
    versions = spec.objects("versions")
    if spec.flag("preserveUnknownFields"):
        spec.invalid("preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    if versions and sum(version.flag("storage") for version in versions) != 1:
        names = [version.text("name") for version in versions]
        spec.invalid("versions", names, "must have exactly one version marked as storage version")


@rules.check
def _version(version: Place) -> None:
    schema = value_at(version.value, "schema", "openAPIV3Schema")
    for finding in find_schema_problems(schema, version.child_or_empty("schema").path("openAPIV3Schema")):
        version.report(finding)
