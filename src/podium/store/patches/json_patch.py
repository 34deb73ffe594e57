"""JSON patch (RFC 6902): a list of operations on the places that JSON pointers (RFC 6901) name."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.store.errors import StoreError, bad_request

MAX_OPERATIONS = 10_000
"""How many operations a patch may have (apiserver's endpoints/handlers/patch.go)."""

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""How much JSON the `copy` operations of a patch may make in all."""

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
    """What the patch makes of the target, which is not changed.

    Objects hold no nulls, so that a test for null succeeds where there is nothing. Raises StoreError: 400 for what is
    no patch, 413 for too many operations, and 422 for one that cannot be carried out.
    """
    operations = _operations(patch)
    document = _Document(target)
    for index, operation in enumerate(operations):
        try:
            document.apply(operation)
        except (LookupError, ValueError) as error:
            raise StoreError(422, "Invalid", f"operation {index} of the patch cannot be done: {error}") from None
    return document.root


def _operations(patch: Any) -> list[dict[str, Any]]:
    if not isinstance(patch, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(patch) > MAX_OPERATIONS:
        problem = f"a JSON patch has at most {MAX_OPERATIONS} operations, this one has {len(patch)}"
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
    """A document that changes in place, none of which is shared with what it was made from."""

    def __init__(self, target: Any) -> None:
        self.root = _copied(target)
        self._copied_bytes = 0

    def apply(self, operation: dict[str, Any]) -> None:
        """Carry out one operation. Raises LookupError for a place that does not exist, ValueError for other trouble."""
        path = _pointer(operation["path"])
        match operation["op"]:
            case "add":
                self._add(path, _copied(operation["value"]))
            case "remove":
                self._remove(path)
            case "replace":
                self._get(path)
                self._set(path, _copied(operation["value"]))
            case "copy":
                self._add(path, self._copy(_pointer(operation["from"])))
            case "move":
                self._move(_pointer(operation["from"]), path)
            case _:
                self._test(path, operation)

    def _get(self, path: list[str]) -> Any:
        value = self.root
        for step in path:
            value = _child(value, step)
        return value

    def _set(self, path: list[str], value: Any) -> None:
        if not path:
            self.root = value
            return
        parent = self._get(path[:-1])
        parent[_index(path[-1], len(parent)) if isinstance(parent, list) else path[-1]] = value

    def _add(self, path: list[str], value: Any) -> None:
        parent = self._get(path[:-1]) if path else None
        if isinstance(parent, list):
            parent.insert(len(parent) if path[-1] == "-" else _index(path[-1], len(parent) + 1), value)
        elif path and not isinstance(parent, dict):
            raise LookupError(f"/{'/'.join(path[:-1])} is neither an object nor a list")
        else:
            self._set(path, value)

    def _remove(self, path: list[str]) -> Any:
        if not path:
            raise ValueError("the whole object cannot be removed")
        removed = self._get(path)
        parent = self._get(path[:-1])
        del parent[_index(path[-1], len(parent)) if isinstance(parent, list) else path[-1]]
        return removed

    def _copy(self, source: list[str]) -> Any:
        value = self._get(source)
        encoded = msgspec.json.encode(value)
        self._copied_bytes += len(encoded)
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise ValueError(f"the copies of the patch take more than {MAX_COPIED_BYTES} bytes")
        return msgspec.json.decode(encoded)

    def _move(self, source: list[str], path: list[str]) -> None:
        if path != source and path[: len(source)] == source:
            raise ValueError("nothing can be moved into itself")
        self._add(path, self._remove(source))

    def _test(self, path: list[str], operation: dict[str, Any]) -> None:
        try:
            found = self._get(path)
        except LookupError:
            if operation["value"] is not None:
                raise
            return
        if not _is_same(found, operation["value"]):
            raise ValueError(f"{operation['path']} does not have the value that is tested for")


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
    """The position that a step names in a list; 0 is written as such, all others without leading zeros."""
    plain = step.isascii() and step.isdigit() and len(step) <= 9 and (step == "0" or step[0] != "0")
    if not plain or int(step) >= length:
        raise LookupError(f"{step} is no place in a list of {length}")
    return int(step)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    return [_copied(entry) for entry in value] if isinstance(value, list) else value


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: numbers by value, true and false being none."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(entry, other[key]) for key, entry in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_is_same(*pair) for pair in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
