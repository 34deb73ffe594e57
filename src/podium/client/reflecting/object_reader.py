"""How objects of a kind are read as a server sends them, whatever is in them."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.requests.observations import received
from podium.store.api_resource import APIResource
from podium.store.conversion.conversion import as_stored
from podium.store.stored import Stored


class ObjectReader:
    """Reads objects of one kind; ``unreadable`` says by key what is wrong with those that cannot be read.

    With ``is_any_version`` the kind may be served in another of its versions alone (`try_next_version`). ``failed`` is
    how often anything could not be read.
    """

    def __init__(self, resource: APIResource, *, is_any_version: bool) -> None:
        self._resource = resource
        self._versions = (resource.served_versions if is_any_version else ()) or (resource.api_version,)
        self._tried = 0
        self.unreadable: dict[str, str] = {}
        self.failed = 0

    @property
    def api_version(self) -> str:
        """The version to ask for, "" for the kind's own."""
        return self._versions[self._tried] if self._tried else ""

    def try_next_version(self) -> bool:
        """The server does not have the kind in this version; whether there is one yet to be tried. Else begin again."""
        self._tried = (self._tried + 1) % len(self._versions)
        return bool(self._tried)

    def read(self, raw: Raw, known: Mapping[str, Stored], *, is_gone: bool = False) -> Stored | None:
        """The object; for one that cannot be read, what is known of it where it is gone, else None."""
        resource, version = self._resource, self._versions[self._tried]
        if "kind" not in raw:
            raw = {"apiVersion": version, "kind": resource.kind, **raw}
        # Who wrote which field is no concern of machines, and often most of an object.
        part_of(raw, "metadata").pop("managedFields", None)
        try:
            stored = received(resource, as_stored(resource, raw, version) if self._tried else raw)
        except (InputError, ValueError) as error:
            return self._fail(raw, str(error), known, is_gone=is_gone)
        if self.unreadable:
            self.unreadable.pop(stored.key, None)
        return stored

    def _fail(self, raw: Raw, problem: str, known: Mapping[str, Stored], *, is_gone: bool) -> Stored | None:
        named = part_of(raw, "metadata")
        namespace, name = named.get("namespace"), named.get("name")
        key = f"{namespace}/{name}" if namespace else str(name)
        self.failed += 1
        if is_gone:
            self.unreadable.pop(key, None)
            return known.get(key)
        self.unreadable[key] = problem
        return None


def part_of(raw: Raw, name: str) -> Raw:
    """An object within one; {} where it is none."""
    part = raw.get(name)
    return part if isinstance(part, dict) else {}
