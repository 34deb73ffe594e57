"""`podium plan change`: changes of any field of any object, as assignments and as patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.errors import InputError, PodiumError, likely, locating, nodes_named, suggestion
from podium.api.input.codec import Document, Input
from podium.api.kinds import KINDS
from podium.api.meta import Raw
from podium.api.objects import label_of, read_object
from podium.api.pod import Pod
from podium.api.policy import PriorityClass
from podium.api.schemas.schema import ListOf, Object, fields_of, is_type
from podium.api.workloads import POD_PATHS
from podium.app.console.page import Section
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.impact import impact_text
from podium.app.planning.question import PlanQuestion, PlanRun
from podium.app.planning.scenarios import changed_at_start, kept_priorities, recreated, step
from podium.store.errors import StoreError
from podium.store.strategic_patch import merge_schema_of, strategic_patch

_MAX_LENGTH = 80
# The names behind these are single names that may contain dots.
_MAPS = ("labels", "annotations", "nodeSelector", "allocatable", "capacity", "requests", "limits", "matchLabels")
_AMOUNTS = ("requests", "limits")


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """One object before and after a change, and its differences as text."""

    label: str
    before: Document
    after: Document
    differences: tuple[str, ...]

    @classmethod
    def of(cls, document: Document, after: Raw) -> ChangedObject:
        """Return the change of an object. Raises InputError for an invalid object, and if nothing changes."""
        label = label_of(document.raw)
        with locating(object=label):
            read = read_object(after)
        differences = tuple(_differences(document.raw, after, ""))
        if not differences:
            raise InputError(f"{label}: nothing changes; the object already has these values")
        return cls(label, document, msgspec.structs.replace(document, written=after, object=read.object), differences)


def change(
    run: PlanRun, target: str = "", assignments: Sequence[str] = (), patches: Sequence[Raw] = (), namespace: str = ""
) -> PlanAnswer:
    """Answer what happens if objects change: fields of the target (`deployment/web`, `replicas=5`), then patches.

    Strategic merge patches name their objects; one that names none is for the target. Raises InputError.
    """
    own = object_named(run.read, target, namespace) if target else None
    found: dict[str, tuple[Document, Raw]] = {}
    if own is not None and (assignments or not patches):
        found[label_of(own.raw)] = own, with_fields(own, assignments)
    for patch in patches:
        document = _patched_object(run.read, patch, own)
        label, rest = label_of(document.raw), {key: patch[key] for key in patch if key not in ("apiVersion", "kind")}
        before = found.get(label, (document, document.raw))[1]
        try:
            found[label] = document, strategic_patch(before, rest, merge_schema_of(str(document.raw["kind"])))
        except StoreError as error:
            raise InputError(error.message, object=label) from None
    if not found:
        raise InputError("no change is given; write KIND/NAME FIELD=VALUE, as in deployment/web replicas=5, or a patch")
    changes = [ChangedObject.of(document, raw) for document, raw in found.values()]
    played = run.play(_question(run.read, changes))
    what = changes[0].label if len(changes) == 1 else f"{len(changes):,} objects"
    rows = tuple((each.label, text) for each in changes for text in each.differences[:12])
    data = [{"object": each.label, "changes": list(each.differences)} for each in changes]
    sections = [Section("changes", "Changed", rows, data=data)]
    kept = kept_priorities(run.read, [each.after for each in changes])
    return played.answer(f"changing {what}: {impact_text(played.impact)}", sections=sections, caveats=kept)


def _patched_object(read: Input, patch: Raw, own: Document | None) -> Document:
    metadata = patch.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(name, str):
        kind = kind_named(str(patch.get("kind", "")))
        return object_named(read, f"{kind}/{name}", str(metadata.get("namespace", "")))
    if own is None or name is not None or "kind" in patch:
        problem = "a patch names its object by kind and metadata.name, or it is for KIND/NAME and states neither"
        raise InputError(problem, path=".metadata.name")
    return own


def _question(read: Input, changes: Sequence[ChangedObject]) -> PlanQuestion:
    """Return the question what happens if objects are changed at the start, classes before anything else.

    A pending pod, which cannot be updated, is deleted and created again. Raises InputError for a running pod, which
    only its workload changes.
    """
    classes = [change.after for change in changes if isinstance(change.after.object, PriorityClass)]
    first, steps = changed_at_start(read, classes)
    for change in changes:
        object_, raw = change.before.object, change.after.raw
        if isinstance(object_, Pod):
            if object_.spec.node_name:
                raise InputError(f"{change.label} is running and cannot be changed; change its workload or node")
            steps += recreated(object_, raw)
        elif not isinstance(object_, PriorityClass):
            # A status that does not change would be reset to what it was.
            is_kept = raw.get("status") != change.before.raw.get("status")
            steps.append(step("apply", [raw if is_kept else {key: raw[key] for key in raw if key != "status"}]))
    return PlanQuestion("change", tuple(steps), tuple(first))


def with_fields(document: Document, assignments: Sequence[str]) -> Raw:
    """Return the object with fields set as in `replicas=5 requests.cpu=2`. Raises InputError for wrong text."""
    if not assignments:
        raise InputError(f"{label_of(document.raw)}: no change is given; write FIELD=VALUE, as in replicas=5")
    raw = document.raw
    for assignment in assignments:
        path, value = _assigned(raw, assignment)
        raw = _with_value(raw, path, value)
    return raw


def kind_named(text: str) -> str:
    """Return the kind that kubectl means by a word: `deploy`, `deployments`, `Deployment`. Raises InputError."""
    wanted = text.partition(".")[0].lower()
    words = {word: kind.name for kind in KINDS.values() for word in kind.words}
    if wanted not in words:
        raise InputError(f"there is no kind {text}; {suggestion(wanted, likely(wanted, words) or sorted(words)[:8])}")
    return words[wanted]


def object_named(read: Input, text: str, namespace: str = "") -> Document:
    """Return the object that `kind/name` or `kind/namespace/name` means. Raises InputError for an unknown one.

    Without a namespace it is in `namespace`, else in `default`, else in the only namespace that has one of that name.
    A node's name may lack its domain, or be a pattern for one node.
    """
    word, slash, name = text.partition("/")
    if not slash or not name:
        raise InputError(f"{text} is not an object; write KIND/NAME, as in deployment/web, or KIND/NAMESPACE/NAME")
    kind = kind_named(word)
    found = read.of_kind(kind)
    meant = nodes_named(name, found) if kind == "Node" else [name] if name in found else []
    if len(meant) == 1:
        return found[meant[0]]
    if "/" not in name:
        key = f"{namespace or 'default'}/{name}"
        alike = [key] if key in found else [key for key in found if key.rpartition("/")[2] == name]
        if len(alike) == 1 and (not namespace or alike == [key]):
            return found[alike[0]]
        if len(alike) > 1:
            raise InputError(f"{text} is there {len(alike)} times: {', '.join(alike)}; write KIND/NAMESPACE/NAME")
    near = meant[:3] or likely(name, found) or likely(name, (key.rpartition("/")[2] for key in found))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(found):,} of that kind"
    raise InputError(f"there is no {kind} {name}; {hint}")


def _assigned(raw: Raw, assignment: str) -> tuple[list[str], Any]:
    """Return the path and value of `replicas=5`, or of `nodeSelector.disk-`, which removes the field (None)."""
    name, equals, text = assignment.partition("=")
    if not equals:
        if not assignment.endswith("-"):
            raise InputError(f"{assignment}: write it as FIELD=VALUE, or as FIELD- to remove it")
        return _path(raw, assignment[:-1]), None
    path = _path(raw, name)
    is_text = len(path) > 1 and path[-2] in _MAPS
    try:
        return path, text if is_text else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return path, text


def _path(raw: Raw, name: str) -> list[str]:
    """Return the path of a field of the object, of its spec, of its pods' spec, or of their container."""
    container, colon, field = name.partition(":")
    words = _words(field if colon else name)
    kind = str(raw["kind"])
    template = [*POD_PATHS.get(kind, ()), "spec"]
    if words[0] in _AMOUNTS or colon:
        inner = ["resources", *words] if words[0] in _AMOUNTS else words
        return [*template, "containers", _container(raw, template, container if colon else ""), *inner]
    prefixes: tuple[tuple[list[str], bool], ...] = (
        (["metadata"], words[0] in ("labels", "annotations")),
        ([], words[0] in _fields(kind)),
        (["status"], words[0] in ("allocatable", "capacity") and kind == "Node"),
        (["spec"], words[0] in _fields(kind, "spec")),
        (template, words[0] in _fields("PodSpec")),
    )
    for prefix, is_there in prefixes:
        if is_there:
            return [*prefix, *words]
    known = [*_fields(kind), *_fields(kind, "spec"), *_AMOUNTS, *(_fields("PodSpec") if len(template) > 1 else ())]
    raise InputError(f"{label_of(raw)} has no field {words[0]}; {suggestion(words[0], known)}")


def _words(name: str) -> list[str]:
    words = name.split(".")
    for place, word in enumerate(words[:-1]):
        if word in _MAPS:
            return [*words[: place + 1], ".".join(words[place + 1 :])]
    if not all(words):
        raise InputError(f"{name!r} is not a field; write names with dots between them")
    return words


def _fields(kind: str, field: str = "") -> list[str]:
    """Return the names of the fields of a type, or of one of its fields."""
    if not is_type(kind):
        return []
    fields = fields_of(kind)
    if not field:
        return list(fields)
    type_ = fields[field].type if field in fields else None
    type_ = type_.item if isinstance(type_, ListOf) else type_
    return list(fields_of(type_.name)) if isinstance(type_, Object) and is_type(type_.name) else []


def _container(raw: Raw, template: Sequence[str], name: str) -> str:
    spec: Any = raw
    for word in template:
        spec = spec.get(word, {}) if isinstance(spec, dict) else {}
    names = [str(container.get("name")) for container in spec.get("containers", ())]
    if not name and len(names) == 1:
        return names[0]
    if name in names:
        return name
    problem = f"has no container {name}" if name else f"has {len(names)} containers"
    raise InputError(f"{label_of(raw)} {problem}; write CONTAINER:FIELD with one of {', '.join(names) or 'none'}")


def _with_value(raw: Raw, path: list[str], value: Any) -> Raw:
    """Return a copy of the object with a value at a path; None removes the field. Raises InputError."""
    name, *rest = path
    if not rest:
        if value is None:
            return {key: kept for key, kept in raw.items() if key != name}
        return {**raw, name: value}
    inner = raw.get(name, {})
    if isinstance(inner, list):
        which, *rest = rest
        for index, item in enumerate(inner):
            if isinstance(item, dict) and (str(index) == which or item.get("name") == which):
                changed = _with_value(item, rest, value) if rest else value
                return {**raw, name: [*inner[:index], changed, *inner[index + 1 :]]}
        raise InputError(f".{name} has no item {which}; name one by its number from 0, or by its name")
    if not isinstance(inner, dict):
        raise InputError(f".{name} is not an object, and has no field {rest[0]}")
    return {**raw, name: _with_value(inner, rest, value)}


def _differences(before: Any, after: Any, path: str) -> list[str]:
    """Return the changed fields, as in `.spec.replicas: 3 -> 5`."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        return [text for name in names for text in _differences(before.get(name), after.get(name), f"{path}.{name}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [text for index, (old, new) in enumerate(pairs) for text in _differences(old, new, f"{path}[{index}]")]
    return [] if before == after else [f"{path}: {_value_text(before)} -> {_value_text(after)}"]


def _value_text(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (TypeError, ValueError) as error:
        raise PodiumError(f"cannot be shown: {error}") from None
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
