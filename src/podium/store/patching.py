"""The patch types, and the checks of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from podium.api.errors import shown
from podium.api.input.yaml import MAX_DEPTH
from podium.api.meta import Raw, value_at
from podium.api.schemas.schema import schema_of, write_out_amounts
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError, bad_request
from podium.store.strategic_patch import merge_schema_of, strategic_patch

PatchType = Literal["json", "merge", "strategic", "apply"]
"""`application/json-patch+json`, `application/merge-patch+json`, `application/strategic-merge-patch+json` and
`application/apply-patch+yaml`. The last is not a change, but a partial object (`podium.store.field_ownership`)."""

_ENCODER = msgspec.json.Encoder()


def patched(resource: APIResource, raw: Raw, patch: Any, type_: PatchType, section: str = "") -> Raw:
    """Return the object with the patch applied; the object itself is not changed.

    Nulls in the result mean absent fields.

    `section` names the only field of the result that the caller uses, such as `status`.

    Raises StoreError: 400 for a patch that is not of that type or that names another object, 413 and 422 as
    `json_patch` does, and 415 for a strategic merge patch of a custom resource, whose merge keys are not known.
    """
    if isinstance(patch, StatusPatch):
        if patch.before is raw and section == "status":
            return {**raw, section: patch.after}
        patch = wire_patch(patch)
    if type_ == "apply":
        raise StoreError(415, "UnsupportedMediaType", "this is changed by patches, and not applied")
    if type_ == "strategic" and resource.is_custom:
        problem = f"{resource.kind} takes JSON patches and merge patches, no strategic merge patches"
        raise StoreError(415, "UnsupportedMediaType", problem)
    try:
        if type_ == "json":
            result = json_patch(raw, patch)
            check_depth(result)
            if (schema := schema_of(resource.group, resource.kind)) is not None:
                write_out_amounts(result, schema)
        else:
            # A merge result is no deeper than the deeper of its inputs.
            check_depth(patch)
            merges = type_ == "merge"
            result = merge_patch(raw, patch) if merges else strategic_patch(raw, patch, merge_schema_of(resource.kind))
        if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
            raise bad_request("the patch leaves no object with metadata")
        result = without_nulls(result, raw, section)
    except RecursionError:
        raise bad_request(f"nested too deep; at most {MAX_DEPTH} levels are allowed") from None
    _check_identity(raw, result)
    return result


def _check_identity(before: Raw, after: Raw) -> None:
    for path in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")):
        if value_at(after, *path) != (had := value_at(before, *path)):
            raise bad_request(f"{'.'.join(path)} is {shown(had)}, and a patch cannot change it")


def merge_patch(target: Any, patch: Any) -> Any:
    """Return the target with the patch merged in; neither is changed, and the result shares structure with both.

    Objects merge field by field, null removes a field, and any other value replaces the old one.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merge_patch(result.get(field), value)
    return result


class StatusPatch(msgspec.Struct, frozen=True):
    """A strategic merge patch of an object's status, made from the current and the desired status.

    If it is applied to the object that it was made from, the result is `after`; neither the patch nor the result has to
    be computed. For any other object, or when it is sent over the wire, it is an ordinary patch.

    `before` is the object, `after` the status without nulls, with its fields in merge order. `make` computes the patch
    from both.
    """

    before: Raw
    after: Raw
    make: Callable[[Raw, Raw], Raw]


def wire_patch(patch: Any) -> Any:
    """Return a patch in its wire form."""
    return patch.make(patch.before, patch.after) if isinstance(patch, StatusPatch) else patch


def without_nulls(patched: Raw, before: Raw, section: str = "") -> Raw:
    """Return the patched object without null entries.

    With a `section`, only that section and changed values are cleaned.
    """
    cleaned = {}
    for name, value in patched.items():
        if section and name != section and value is before.get(name):
            cleaned[name] = value
        elif value is not None:
            cleaned[name] = _cleaned(value) if _may_have_nulls(value) else value
    return cleaned


def check_depth(value: Any) -> None:
    """Raise RecursionError for a value that is nested deeper than `MAX_DEPTH`."""
    try:
        written = _ENCODER.encode(value)
    except UnicodeEncodeError:
        written = b"[" * (MAX_DEPTH + 1)
    # Fewer brackets rule out deep nesting; bytes.count runs in C.
    if written.count(b"{") + written.count(b"[") >= MAX_DEPTH:
        _descend(value, MAX_DEPTH)


def _descend(value: Any, depth: int) -> None:
    if not depth:
        raise RecursionError
    if isinstance(value, dict):
        value = [one for one in value.values() if one is not None]
    if isinstance(value, list):
        for one in value:
            _descend(one, depth - 1)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items() if one is not None}
    return [_cleaned(one) for one in value] if isinstance(value, list) else value


def _may_have_nulls(value: Any) -> bool:
    """Return whether a value may contain nulls; the test that it does not runs in C."""
    if not isinstance(value, (dict, list)):
        return False
    try:
        return b"null" in _ENCODER.encode(value)
    except UnicodeEncodeError:
        return True


MAX_OPERATIONS = 10_000
"""The maximum number of operations in a patch (apiserver's endpoints/handlers/patch.go)."""

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""The maximum total size of JSON that the `copy` operations of a patch may create."""

_NEEDED = {
    "add": ("path", "value"),
    "copy": ("from", "path"),
    "move": ("from", "path"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "test": ("path", "value"),
}
_ABSENT = object()


def json_patch(target: Any, patch: Any) -> Any:
    """Return the patched target; the target itself is not changed.

    As in kube-apiserver, a member that an object lacks equals null, and can be replaced. Raises StoreError: 400 for a
    malformed patch, 413 for too many operations, and 422 for an operation that fails.
    """
    document = _Document(target)
    for index, operation in enumerate(_operations(patch)):
        try:
            document.apply(operation)
        except (LookupError, ValueError) as error:
            raise StoreError(422, "Invalid", f"operation {index} of the patch cannot be done: {error}") from None
    return document.root


def _operations(patch: Any) -> list[dict[str, Any]]:
    if not isinstance(patch, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(patch) > MAX_OPERATIONS:
        problem = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        raise StoreError(413, "RequestEntityTooLarge", problem)
    for index, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise bad_request(f"operation {index} of the patch is not an object")
        needed = _NEEDED.get(operation["op"]) if isinstance(operation.get("op"), str) else None
        if needed is None:
            raise bad_request(f"operation {index} of the patch has no op out of {', '.join(_NEEDED)}")
        for name in needed:
            if name not in operation or (name != "value" and not isinstance(operation[name], str)):
                raise bad_request(f"operation {index} of the patch, {operation['op']}, needs a {name}")
    return patch


class _Document:
    """A document that changes in place and shares no mutable part with its source."""

    def __init__(self, target: Any) -> None:
        self.root = _copy(target)
        self._copied_bytes = 0

    def apply(self, operation: dict[str, Any]) -> None:
        """Perform one operation.

        Raises LookupError for a location that does not exist, ValueError for other problems.
        """
        path = _pointer(operation["path"])
        match operation["op"]:
            case "add":
                self._put(path, _copy(operation["value"]), inserts=True)
            case "remove":
                self._remove(path)
            case "replace":
                self._put(path, _copy(operation["value"]), inserts=False)
            case "copy":
                encoded = msgspec.json.encode(self._member(_pointer(operation["from"])))
                self._copied_bytes += len(encoded)
                if self._copied_bytes > MAX_COPIED_BYTES:
                    raise ValueError(f"the copies of the patch take more than {MAX_COPIED_BYTES} bytes")
                self._put(path, msgspec.json.decode(encoded), inserts=True)
            case "move":
                source = _pointer(operation["from"])
                if path != source and path[: len(source)] == source:
                    raise ValueError("nothing can be moved into itself")
                self._put(path, self._remove(source), inserts=True)
            case _:
                if not _is_same(self._member(path), operation["value"]):
                    raise ValueError(f"{operation['path']} does not have the value that is tested for")

    def _get(self, path: list[str]) -> Any:
        value = self.root
        for step in path:
            value = _child(value, step)
        return value

    def _member(self, path: list[str]) -> Any:
        """Return the value at a path, None if the object there has no such member."""
        parent = self._get(path[:-1])
        return parent.get(path[-1]) if path and isinstance(parent, dict) else self._get(path)

    def _put(self, path: list[str], value: Any, *, inserts: bool) -> None:
        parent = self._get(path[:-1])
        if not path:
            self.root = value
        elif isinstance(parent, dict):
            parent[path[-1]] = value
        elif not isinstance(parent, list):
            raise LookupError(f"/{'/'.join(path[:-1])} is neither an object nor a list")
        elif inserts:
            parent.insert(len(parent) if path[-1] == "-" else _index(path[-1], len(parent) + 1), value)
        else:
            parent[_index(path[-1], len(parent))] = value

    def _remove(self, path: list[str]) -> Any:
        if not path:
            raise ValueError("the whole object cannot be removed")
        removed = self._get(path)
        parent = self._get(path[:-1])
        del parent[_index(path[-1], len(parent)) if isinstance(parent, list) else path[-1]]
        return removed


def _pointer(text: str) -> list[str]:
    if not text:
        return []
    if not text.startswith("/"):
        raise ValueError(f"{text} does not begin with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/")]


def _child(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        found = value.get(step, _ABSENT)
        if found is not _ABSENT:
            return found
    elif isinstance(value, list):
        return value[_index(step, len(value))]
    raise LookupError(f"there is no {step}")


def _index(step: str, length: int) -> int:
    """Return the list index of a pointer segment; leading zeros are invalid, except for 0 itself."""
    plain = step.isascii() and step.isdigit() and len(step) <= 9 and (step == "0" or step[0] != "0")
    if not plain or int(step) >= length:
        raise LookupError(f"{step} is not an index of a list of {length}")
    return int(step)


def _copy(value: Any) -> Any:
    """Return a copy of a value. Raises ValueError for an integer that no object can hold."""
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{shown(value)} is not an integer of 64 bits")
    return [_copy(entry) for entry in value] if isinstance(value, list) else value


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: numbers compare by value; true and false are not numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(entry, other[key]) for key, entry in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_is_same(*pair) for pair in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
