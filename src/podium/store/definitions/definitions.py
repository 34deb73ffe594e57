"""The kinds that the definitions in a store make: they come, change and go with them."""

from __future__ import annotations

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.schemas.structure import findings
from podium.api.structural.shaping import shaped
from podium.api.structural.validation import find_problems
from podium.store.api_resource import APIResource
from podium.store.api_resources import BUILT_IN, APIResources
from podium.store.definitions.definition import (
    KIND,
    clash_of,
    completed,
    defined,
    is_established,
    kind_name,
    with_judged_names,
)
from podium.store.definitions.soundness import check_stored_versions, find_definition_problems
from podium.store.errors import StoreError, bad_request, invalid_fields
from podium.store.log.watch_event import WatchEvent
from podium.store.revisions import Revisions
from podium.store.stored import Stored


class Definitions:
    """Keeps the kinds of `resources` as the store's definitions say, and holds objects to their schemas."""

    def __init__(self, revisions: Revisions, resources: APIResources) -> None:
        self._revisions = revisions
        self._resources = resources
        # How often definitions had changed, and by name what each of them made of a kind.
        self._seen = 0
        self._made: dict[str, tuple[Raw, str]] = {}
        revisions.tell(KIND, self._told)

    def follow(self) -> None:
        """Serve the kinds as the definitions say by now."""
        changes = self._revisions.changes(KIND)
        if changes == self._seen:
            return
        self._seen = changes
        objects = self._revisions.of(KIND)
        for name, (_, kind) in list(self._made.items()):
            if name not in objects:
                del self._made[name]
                self._resources.remove(kind)
        for name, stored in sorted(objects.items()):
            known = self._made.get(name)
            if is_established(stored.raw) and (known is None or known[0] is not stored.raw["spec"]):
                self._serve(name, stored.raw)

    def _serve(self, name: str, raw: Raw) -> None:
        spec = raw["spec"]
        if (spec["group"], spec["names"]["kind"]) in BUILT_IN:
            # Somebody has applied the definition of a kind that is known without one.
            return
        kind = defined(raw)
        self._resources.define(kind.resource, kind.schema, kind.structurals)
        self._made[name] = spec, kind.resource.name

    def _told(self, event: WatchEvent) -> None:
        """End the watches of a kind whose definition is gone, or is another one by now.

        Source: apiextensions-apiserver (pkg/apiserver/customresource_handler.go, updateCustomResourceDefinition).
        """
        before = None if event.previous is None else _served_spec(event.previous.raw)
        after = None if event.type == "DELETED" else _served_spec(event.stored.raw)
        if after is not None and after != before:
            self._revisions.log.begin_anew(kind_name(after))
        elif before is not None and after is None:
            self._revisions.forget(kind_name(before))

    def kind_of(self, definition: Stored) -> str:
        """What the store calls the kind that a definition makes; "" for one that makes none."""
        made = self._made.get(definition.key)
        return made[1] if made is not None else ""

    def of_kind(self, resource: APIResource) -> Stored | None:
        """The definition of a kind; None for one that has none."""
        return self._revisions.of(KIND).get(resource.qualified) if resource.is_custom else None

    def judged(self, resource: APIResource, raw: Raw, previous: Raw | None, now: int) -> Raw:
        """A definition that is to be written, with its status.

        Raises StoreError 400 for a value that is not of its field's type, 422 for what is not right.
        """
        mistyped = next((finding for finding in findings(raw, advises=False) if not finding.is_unknown), None)
        if mistyped is not None:
            raise bad_request(f"{KIND}: {mistyped.path.removeprefix('.')}: {mistyped.message}")
        raw = completed(raw)
        found = find_definition_problems(raw, previous)
        if not found:
            found = list(check_stored_versions(raw["spec"], raw.get("status", {}).get("storedVersions", [])))
        if found:
            raise invalid_fields(resource, str(raw["metadata"].get("name", "")), found)
        group, name = raw["spec"]["group"], raw["metadata"]["name"]
        others = [
            stored.raw
            for key, stored in sorted(self._revisions.of(KIND).items())
            if stored.raw["spec"]["group"] == group and key != name
        ]
        return with_judged_names(raw, clash_of(raw, others), now)

    def waiting(self, group: str) -> list[Stored]:
        """The definitions of a group whose names were taken, by name."""
        objects = sorted(self._revisions.of(KIND).items())
        return [
            stored for _, stored in objects if stored.raw["spec"]["group"] == group and not is_established(stored.raw)
        ]

    def shaped(self, resource: APIResource, raw: Raw) -> Raw:
        """An object of a custom kind as its schema has it: with defaults, without what the schema does not know."""
        structural = self._resources.structural(resource)
        if structural is None:
            return self._resources.defaulted(resource, raw)
        try:
            return shaped(raw, structural)[0]
        except RecursionError:
            raise bad_request("nested too deep") from None

    def check(self, resource: APIResource, raw: Raw, previous: Raw | None) -> None:
        """Raise StoreError 422 for an object that its schema forbids; what was wrong before may stay so."""
        structural = self._resources.structural(resource)
        if structural is None:
            return
        found = find_problems(raw, structural, previous)
        if found and previous is not None:
            known = frozenset(find_problems(previous, structural))
            found = [finding for finding in found if finding not in known]
        if found:
            metadata = raw["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
            raise invalid_fields(resource, key, found)

    def check_creation(self, resource: APIResource) -> None:
        """Raise StoreError 405 for a kind that is on its way out."""
        definition = self.of_kind(resource)
        if definition is not None and definition.object.metadata.deletion_timestamp is not None:
            problem = "create not allowed while custom resource definition is terminating"
            raise StoreError(405, "MethodNotAllowed", problem)


def _served_spec(raw: Raw) -> Raw | None:
    """What a definition says of the kind that it makes; None where it makes none, or one that is built in."""
    spec: Raw = raw["spec"]
    is_own = (spec["group"], spec["names"]["kind"]) not in BUILT_IN
    return spec if is_own and is_established(raw) else None


def register(resources: APIResources, raw: Raw) -> str:
    """Serve the kind of a definition that was kept, while what was kept with it is read; its name, "" for none.

    Raises InputError for one that cannot be read.
    """
    try:
        if not is_established(raw) or (raw["spec"]["group"], raw["spec"]["names"]["kind"]) in BUILT_IN:
            return ""
        kind = defined(raw)
    except (AttributeError, KeyError, TypeError, StopIteration) as error:
        raise InputError(f"the definition of a kind that was kept cannot be read: {error!r}") from None
    resources.define(kind.resource, kind.schema, kind.structurals)
    return kind.resource.name
