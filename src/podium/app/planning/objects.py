"""Finding the object that somebody means, as kubectl writes it, and changing what is written in it."""

from __future__ import annotations

from typing import Any

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.kinds import KINDS
from podium.api.meta import Raw
from podium.api.schemas.suggestion import likely, suggestion

_DEFAULT = "default"


def kind_named(text: str) -> str:
    """The kind that kubectl means by a word: `deploy`, `deployment`, `deployments`, `Deployment`. Raises InputError."""
    wanted = text.partition(".")[0].lower()
    words = {word: kind.name for kind in KINDS.values() for word in kind.words}
    if wanted not in words:
        raise InputError(f"there is no kind {text}; {suggestion(wanted, likely(wanted, words) or sorted(words)[:8])}")
    return words[wanted]


def object_named(read: Input, text: str, namespace: str = "") -> Document:
    """The object that `kind/name` means; its namespace may stand before the name, as in `deployment/team-a/web`.

    Without one it is in `namespace`, else in `default`, else in the only namespace that has one of that name. Raises
    InputError for one that is not there.
    """
    word, slash, name = text.partition("/")
    if not slash or not name:
        raise InputError(f"{text} is no object; write KIND/NAME, as in deployment/web, or KIND/NAMESPACE/NAME")
    kind = kind_named(word)
    found = {
        document.object.key: document
        for document in read.documents
        if document.object is not None and type(document.object).__name__ == kind
    }
    if name in found:
        return found[name]
    if "/" not in name:
        key = f"{namespace or _DEFAULT}/{name}"
        alike = [key] if key in found else [key for key in found if key.rpartition("/")[2] == name]
        if len(alike) == 1 and (not namespace or alike == [key]):
            return found[alike[0]]
        if len(alike) > 1:
            raise InputError(f"{text} is there {len(alike)} times: {', '.join(alike)}; write KIND/NAMESPACE/NAME")
    near = likely(name, found) or likely(name, (key.rpartition("/")[2] for key in found))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(found):,} of that kind"
    raise InputError(f"there is no {kind} {name}; {hint}")


def with_value(raw: Raw, path: list[str], value: Any) -> Raw:
    """The object with a value at a path, None for without it; the argument is not changed. Raises InputError."""
    name, *rest = path
    if not rest:
        if value is None:
            return {key: kept for key, kept in raw.items() if key != name}
        return {**raw, name: value}
    inner = raw.get(name, {})
    if isinstance(inner, list):
        return {**raw, name: _with_item(inner, name, rest, value)}
    if not isinstance(inner, dict):
        raise InputError(f".{name} is not an object, and has no field {rest[0]}")
    return {**raw, name: with_value(inner, rest, value)}


def _with_item(items: list[Any], name: str, path: list[str], value: Any) -> list[Any]:
    """The list with a value in the item of that number, or of that name."""
    which, *rest = path
    for index, item in enumerate(items):
        if isinstance(item, dict) and (str(index) == which or item.get("name") == which):
            changed = with_value(item, rest, value) if rest else value
            return [*items[:index], changed, *items[index + 1 :]]
    raise InputError(f".{name} has no item {which}; name one by its number from 0, or by its name")
