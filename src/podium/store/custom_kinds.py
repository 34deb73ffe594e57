"""The custom kinds of the definitions in a store, kept in step with them, and the validation of definitions.

Source: apiextensions-apiserver (pkg/apis/apiextensions/validation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from podium.api.errors import InputError
from podium.api.meta import Kubernetes, Raw, objects_at, value_at
from podium.api.schemas import schema
from podium.api.structural.structural import Structural, TooLargeError, read_structural, shaped
from podium.api.structural.validation import find_problems
from podium.api.validation import findings
from podium.store import version_conversion
from podium.store.api_resources import BUILT_IN, APIResource, APIResources, ScalePaths
from podium.store.custom_conversion import converter_of
from podium.store.definition_rules import find_definition_problems
from podium.store.errors import StoreError, bad_request, invalid_fields, too_large_object
from podium.store.revisions import Revisions
from podium.store.stored import Stored, is_true, reread, with_conditions
from podium.store.watch_log import WatchEvent
from podium.store.webhook_calls import WebhookCalls

DEFINITION = "CustomResourceDefinition"
DEFINITION_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a deleted definition until the objects of its kind are gone."""

_BUILT_IN_VERSIONS = {version for kind in BUILT_IN.values() for version in kind.served_versions}
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


class CustomKinds:
    """A controller that keeps the kinds of `resources` in step with the definitions and validates their objects."""

    def __init__(self, revisions: Revisions, resources: APIResources, webhooks: WebhookCalls) -> None:
        self._revisions = revisions
        self._resources = resources
        self._webhooks = webhooks
        # The change counter of the definitions, and by name the kind that each of them defines.
        self._seen = 0
        self._made: dict[str, tuple[Raw, str]] = {}
        revisions.on_write(DEFINITION, self._definition_changed)

    def follow(self) -> None:
        """Serve the kinds as the definitions currently say."""
        changes = self._revisions.changes(DEFINITION)
        if changes == self._seen:
            return
        self._seen = changes
        objects = self._revisions.of(DEFINITION)
        for name, (_, kind) in list(self._made.items()):
            if name not in objects:
                del self._made[name]
                self._resources.remove(kind)
        for name, stored in sorted(objects.items()):
            spec, known = stored.raw["spec"], self._made.get(name)
            if known is None or known[0] is not spec:
                kind = _serve(self._resources, stored.raw, self._webhooks)
                if kind:
                    self._made[name] = spec, kind

    def _definition_changed(self, event: WatchEvent) -> None:
        """Serve the kind of a definition that was written, and end its watches if it was deleted or changed.

        Source: apiextensions-apiserver (pkg/apiserver/customresource_handler.go, updateCustomResourceDefinition).
        """
        before = None if event.previous is None else _served_spec(event.previous.raw)
        after = None if event.type == "DELETED" else _served_spec(event.stored.raw)
        if after is not None and after != before:
            self._revisions.log.end(kind_name(after), begins_anew=True)
            self.follow()
            self.complete(kind_name(after))
        elif before is not None and after is None:
            self._revisions.forget(kind_name(before))
            self.follow()

    def complete(self, kind: str) -> None:
        """Give the objects of a kind the defaults of its schema, as kube-apiserver does whenever it reads them."""
        resource = self._resources.named(kind)
        for stored in list(self._revisions.of(kind).values()):
            raw = stored.raw
            with suppress(StoreError):
                raw = self.shaped(resource, raw)
            self._revisions.put(Stored(raw, stored.object, stored.version, resource, stored.key))

    def kind_of(self, definition: Stored) -> str:
        """Return the store's name of the kind that a definition defines; "" if it defines none."""
        return self._made.get(definition.key, ({}, ""))[1]

    def of_kind(self, resource: APIResource) -> Stored | None:
        """Return the definition of a kind, or None."""
        return self._revisions.of(DEFINITION).get(resource.qualified) if resource.is_custom else None

    def with_status(self, resource: APIResource, raw: Raw, previous: Raw | None, now: int) -> Raw:
        """Return a definition to be written, with its status.

        Raises StoreError 400 for a value of the wrong type, and 422 for an invalid definition.
        """
        mistyped = next((finding for finding in schema.findings(raw, advises=False) if not finding.is_unknown), None)
        if mistyped is not None:
            raise bad_request(f"{DEFINITION}: {mistyped.path.removeprefix('.')}: {mistyped.message}")
        raw = completed(raw)
        found: list[findings.Finding] = find_definition_problems(raw, previous)
        if not found:
            # Objects may be stored in each of these versions.
            versions = [version.get("name") for version in objects_at(raw["spec"], "versions")]
            found = [
                findings.not_found(f".status.storedVersions[{index}]", version, "must appear in spec.versions")
                for index, version in enumerate(raw.get("status", {}).get("storedVersions", []))
                if version not in versions
            ]
        if found:
            raise invalid_fields(resource, str(raw["metadata"].get("name", "")), found)
        others = [stored.raw for stored in self.of_group(raw["spec"]["group"]) if stored.key != raw["metadata"]["name"]]
        return with_judged_names(raw, clash_of(raw, others), now)

    def of_group(self, group: str) -> list[Stored]:
        """Return the definitions of a group, by name."""
        return [stored for stored in self._revisions.in_order(DEFINITION) if stored.raw["spec"]["group"] == group]

    def shaped(self, resource: APIResource, raw: Raw) -> Raw:
        """Return an object of a custom kind with the defaults of its version's schema and without unknown fields.

        An object of a version that the definition does not have counts as one of the storage version.
        """
        structural = self._resources.structural(resource, raw["apiVersion"])
        if structural is None:
            raw = {**raw, "apiVersion": self._resources.named(resource.name).api_version}
            structural = self._resources.structural(resource)
        if structural is None:
            return raw
        try:
            return shaped(raw, structural)[0]
        except RecursionError:
            raise bad_request("nested too deep") from None
        except TooLargeError:
            raise too_large_object() from None

    def problems(self, resource: APIResource, raw: Raw, previous: Raw | None = None) -> list[findings.Finding]:
        """Return how an object violates its version's schema; none for values that an update does not change.

        `previous` is in the same version.
        """
        structural = self._resources.structural(resource, raw["apiVersion"])
        return [] if structural is None else find_problems(raw, structural, previous)

    def in_storage_version(
        self, resource: APIResource, raw: Raw, object_: Kubernetes
    ) -> tuple[APIResource, Raw, Kubernetes]:
        """Return a custom kind, and an object of it with its reading, in the storage version."""
        resource = self._resources.named(resource.name)
        if raw["apiVersion"] == resource.api_version:
            return resource, raw, object_
        stored = self.shaped(resource, version_conversion.converted(resource, [raw], resource.api_version)[0])
        return resource, stored, reread(object_, raw, stored)


def _served_spec(raw: Raw) -> Raw | None:
    """Return the spec of a definition whose kind is served; None if it defines none, or one at a built-in path."""
    spec: Raw = raw["spec"]
    versions = {f"{spec['group']}/{version['name']}" for version in spec["versions"]}
    is_own = (spec["group"], spec["names"]["kind"]) not in BUILT_IN and not versions <= _BUILT_IN_VERSIONS
    return spec if is_own and is_established(raw) else None


def register(resources: APIResources, raw: Raw) -> str:
    """Serve the kind of a definition from a journal while the journal is loaded; return its name, "" for none.

    Raises InputError for a definition that cannot be read.
    """
    try:
        return _serve(resources, raw)
    except (AttributeError, KeyError, TypeError, StopIteration) as error:
        raise InputError(f"the definition of a kind that was kept cannot be read: {error!r}") from None


def _serve(resources: APIResources, raw: Raw, webhooks: WebhookCalls | None = None) -> str:
    """Serve the kind of a definition; return its name, "" if it defines none, or a built-in one."""
    if _served_spec(raw) is None:
        return ""
    resource, structurals = defined(raw)
    if webhooks is not None and len(structurals) > 1:
        resource = replace(resource, converter=converter_of(raw, structurals, webhooks))
    resources.define(resource, structurals)
    return resource.name


def completed(raw: Raw) -> Raw:
    """Return the definition with the names that default from others."""
    spec = raw.get("spec")
    names, kind = value_at(spec, "names"), value_at(spec, "names", "kind")
    if not isinstance(spec, dict) or not isinstance(kind, str):
        return raw
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    return {**raw, "spec": {"conversion": {"strategy": "None"}, **spec, "names": names}}


def with_judged_names(raw: Raw, clash: tuple[str, str] | None, now: int) -> Raw:
    """Return the definition with the status of its names: accepted, or the conflicting name and reason from `clash`."""
    names, status = raw["spec"]["names"], raw.get("status", {})
    storage = next(version["name"] for version in raw["spec"]["versions"] if version.get("storage"))
    stored = status.get("storedVersions") or []
    conditions = status.get("conditions", ())
    if clash is None:
        accepted = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        established = _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        accepted = _condition("NamesAccepted", "False", clash[0], f'"{clash[1]}" is already in use')
        established = _condition("Established", "False", "NotAccepted", "not all names are accepted")
    changed = (accepted,) if clash is not None and is_true(conditions, "Established") else (accepted, established)
    return {
        **raw,
        "status": {
            **status,
            "conditions": with_conditions(conditions, changed, now),
            "acceptedNames": names if clash is None else status.get("acceptedNames", {"kind": "", "plural": ""}),
            "storedVersions": stored if storage in stored else [*stored, storage],
        },
    }


def as_terminating(raw: Raw, now: int) -> Raw:
    """Return the definition with the condition Terminating, while the objects of its kind are deleted."""
    metadata, status = raw["metadata"], raw.get("status", {})
    finalizers = [*dict.fromkeys((*metadata.get("finalizers", ()), DEFINITION_FINALIZER))]
    reason, message = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
    terminating = _condition("Terminating", "True", reason, message)
    return {
        **raw,
        "metadata": {**metadata, "finalizers": finalizers},
        "status": {**status, "conditions": with_conditions(status.get("conditions", ()), (terminating,), now)},
    }


def is_established(raw: Raw) -> bool:
    """Return whether the kind is served."""
    return is_true(raw.get("status", {}).get("conditions"), "Established")


def kind_name(spec: Raw) -> str:
    """Return the store's name of the kind that a definition defines."""
    return f"{spec['names']['kind']}.{spec['group']}"


def clash_of(raw: Raw, others: list[Raw]) -> tuple[str, str] | None:
    """Return the conflict of a definition's names with others of its group: the name and the condition's reason."""
    names = raw["spec"]["names"]
    plurals: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        taken = other.get("status", {}).get("acceptedNames", {})
        plurals |= {taken.get("plural"), taken.get("singular"), *taken.get("shortNames", ())}
        kinds |= {taken.get("kind"), taken.get("listKind")}
    # If several names conflict, the last one is reported, as upstream does.
    found: tuple[str, str] | None = None
    for field, used in (("plural", plurals), ("singular", plurals), ("shortNames", plurals), ("kind", kinds)):
        wanted = names.get(field) or ()
        clash = next((name for name in ([wanted] if isinstance(wanted, str) else wanted) if name in used), None)
        if clash is not None:
            found = f"{field[0].upper()}{field[1:]}Conflict", clash
    return ("ListKindConflict", names["listKind"]) if names.get("listKind") in kinds else found


def defined(raw: Raw) -> tuple[APIResource, Mapping[str, Structural]]:
    """Return the kind of a valid definition, and the schemas of its versions by `apiVersion`."""
    spec, names = raw["spec"], raw["spec"]["names"]
    group = spec["group"]
    versions = {f"{group}/{version['name']}": version for version in spec["versions"]}
    storage = next(version for version in versions.values() if version.get("storage"))
    served = sorted((version["name"] for version in versions.values() if version.get("served")), key=version_order)
    subresources = storage.get("subresources") or {}
    scale = subresources.get("scale")
    resource = APIResource(
        group=group,
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        version=storage["name"],
        has_status="status" in subresources,
        has_scale=bool(scale),
        is_custom=True,
        selectable=_selectable(storage),
        selectables={of: _selectable(version) for of, version in versions.items()},
        served=tuple(f"{group}/{name}" for name in served),
        singular=names.get("singular") or None,
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        scale_paths=ScalePaths(
            spec_replicas=_steps(scale["specReplicasPath"]),
            status_replicas=_steps(scale["statusReplicasPath"]),
            label_selector=_steps(scale.get("labelSelectorPath") or ""),
        )
        if scale
        else None,
        columns={of: tuple(version.get("additionalPrinterColumns", ())) for of, version in versions.items()},
        deprecations={
            of: version.get("deprecationWarning") or f"{of} {names['kind']} is deprecated"
            for of, version in versions.items()
            if version.get("deprecated")
        },
    )
    schemas = {of: version["schema"]["openAPIV3Schema"] for of, version in versions.items()}
    return resource, {of: read_structural(schema, is_root=True) for of, schema in schemas.items()}


def _selectable(version: Raw) -> tuple[tuple[str, str], ...]:
    return tuple((field["jsonPath"].removeprefix("."), "") for field in version.get("selectableFields", ()))


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split(".")) if path else ()


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version, best first (apimachinery, pkg/version CompareKubeAwareVersionStrings)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), version)


def _condition(type_: str, status: str, reason: str, message: str) -> Raw:
    return {"type": type_, "status": status, "reason": reason, "message": message}
