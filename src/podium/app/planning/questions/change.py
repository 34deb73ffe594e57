"""`podium plan set` and `podium plan patch`: any field of any object is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from podium.api.errors import InputError, PodiumError
from podium.api.input.codec import Document, Input
from podium.api.meta import Raw
from podium.api.objects import label_of, read_object
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PriorityClass
from podium.api.schemas.schema import ListOf, Object, fields_of, is_type
from podium.api.schemas.suggestion import suggestion
from podium.app.planning.answer import PlanAnswer, Section
from podium.app.planning.answering import answer_of, outcome
from podium.app.planning.objects import kind_named, object_named, with_value
from podium.app.planning.question import Played, Question, applied, step
from podium.store.errors import StoreError
from podium.store.patches.merge_keys import schema_of
from podium.store.patches.strategic_patch import strategic_patch

_MOST_FIELDS = 12
# What is behind these is one name, dots and all.
_NAMED = ("labels", "annotations", "nodeSelector", "allocatable", "capacity", "requests", "limits", "matchLabels")
_AMOUNTS = ("requests", "limits")
_NOT_CARRIED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


@dataclass(frozen=True, slots=True)
class Changed:
    """One object before and after; `told` says what changes, for people.

    `from_start`: it is so before anybody acts.
    """

    label: str
    before: Document
    after: Raw
    told: tuple[str, ...]
    from_start: bool = False


def change_question(name: str, changes: Sequence[Changed]) -> Question:
    """The question what happens when objects are changed at the start.

    A PriorityClass, which no update changes, is deleted and made anew, and so is a pod that has no node; running pods
    keep what they have. A class that has been in no cluster is what it is to be before its first pods are made. Raises
    InputError for a running pod, which only its workload changes.
    """
    steps: list[Raw] = []
    begins_with: list[Document] = []
    for change in changes:
        object_ = change.before.object
        if change.from_start:
            begins_with.append(replace(change.before, written=change.after, object=read_object(change.after).object))
            continue
        if isinstance(object_, Pod) and object_.spec.node_name:
            raise InputError(f"{change.label} runs, and a running pod is not changed; change its workload, or the node")
        if isinstance(object_, PriorityClass | Pod):
            steps += _made_anew(change, object_.metadata.namespace)
        else:
            steps.append(applied([_without_status(change.after, change.before.raw)]))
    return Question(name, tuple(steps), tuple(begins_with))


def change_answer(played: Played, changes: Sequence[Changed]) -> PlanAnswer:
    """The answer."""
    what = changes[0].label if len(changes) == 1 else f"{len(changes):,} objects"
    headline = f"changing {what}: {outcome(played.impact)}"
    rows = tuple((change.label, told) for change in changes for told in change.told[:_MOST_FIELDS])
    data = [{"object": change.label, "changes": list(change.told)} for change in changes]
    return answer_of(played, headline, sections=[Section("changes", "Changed", rows, data=data)])


def changes_set(read: Input, target: str, assignments: Sequence[str], namespace: str = "") -> list[Changed]:
    """What `deployment/web replicas=5 requests.cpu=2` changes. Raises InputError for what cannot be meant."""
    document = object_named(read, target, namespace)
    if not assignments:
        raise InputError(f"{target}: nothing is to be changed; write FIELD=VALUE, as in replicas=5")
    raw = document.raw
    for assignment in assignments:
        path, value = _assigned(raw, assignment)
        raw = with_value(raw, path, value)
    return [_changed(read, document, raw)]


def changes_patched(read: Input, patches: Sequence[Document | Raw]) -> list[Changed]:
    """What strategic merge patches change, each naming its object by kind and name. Raises InputError as well."""
    found: dict[str, tuple[Document, Raw]] = {}
    for given in patches:
        patch = given.raw if isinstance(given, Document) else given
        metadata = patch.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise InputError("a patch names its object by kind and metadata.name", path=".metadata.name")
        kind, namespace = kind_named(str(patch.get("kind", ""))), str(metadata.get("namespace", ""))
        document = object_named(read, f"{kind}/{metadata['name']}", namespace)
        label = label_of(document.raw)
        before = found.get(label, (document, document.raw))[1]
        rest = {key: value for key, value in patch.items() if key not in ("apiVersion", "kind")}
        try:
            found[label] = (document, strategic_patch(before, rest, schema_of(kind)))
        except StoreError as error:
            raise InputError(error.message, object=label) from None
    return [_changed(read, document, raw) for document, raw in found.values()]


def _changed(read: Input, document: Document, raw: Raw) -> Changed:
    label = label_of(document.raw)
    try:
        read_object(raw)
    except InputError as error:
        raise error.located(object=label) from None
    told = tuple(_differences(document.raw, raw, ""))
    if not told:
        raise InputError(f"{label}: nothing changes; it is so already")
    return Changed(label, document, raw, told, from_start=_is_new(read, document))


def _is_new(read: Input, document: Document) -> bool:
    """Whether it is a PriorityClass that has been in no cluster, and of which no such pod or group has what it says."""
    named = document.object
    if not isinstance(named, PriorityClass) or named.metadata.uid:
        return False
    return not any(
        item.spec.priority_class_name == named.metadata.name and _has_its_own(item)
        for item in (other.object for other in read.documents)
        if isinstance(item, Pod | PodGroup)
    )


def _has_its_own(item: Pod | PodGroup) -> bool:
    """Whether what it has of its class is to stay, and would not if the class were another one from the start."""
    if item.spec.priority is None:
        return isinstance(item, Pod) and bool(item.spec.node_name)
    return not item.metadata.uid


def _assigned(raw: Raw, assignment: str) -> tuple[list[str], Any]:
    """The path and the value of `replicas=5`, or of `nodeSelector.disk-`, which takes the field away."""
    name, equals, text = assignment.partition("=")
    if not equals:
        if not assignment.endswith("-"):
            raise InputError(f"{assignment}: write it as FIELD=VALUE, or as FIELD- to take it away")
        return _path(raw, assignment[:-1]), None
    path = _path(raw, name)
    if len(path) > 1 and path[-2] in _NAMED:
        return path, text
    try:
        return path, msgspec.json.decode(text)
    except msgspec.DecodeError:
        return path, text


def _path(raw: Raw, name: str) -> list[str]:
    """Where a field is that is named in short: of the object, of its spec, of its pods' spec, or of their container."""
    container, colon, field = name.partition(":")
    words = _words(field if colon else name)
    kind = str(raw["kind"])
    template = ["spec", "template", "spec"] if "template" in _fields(kind, "spec") else ["spec"]
    if kind == "CronJob":
        template = ["spec", "jobTemplate", "spec", "template", "spec"]
    if words[0] in _AMOUNTS or colon:
        inner = ["resources", *words] if words[0] in _AMOUNTS else words
        return [*template, "containers", _container(raw, template, container if colon else ""), *inner]
    if words[0] in ("labels", "annotations"):
        return ["metadata", *words]
    if words[0] in _fields(kind):
        return words
    if words[0] in ("allocatable", "capacity") and kind == "Node":
        return ["status", *words]
    if words[0] in _fields(kind, "spec"):
        return ["spec", *words]
    if words[0] in _fields("PodSpec"):
        return [*template, *words]
    known = [*_fields(kind), *_fields(kind, "spec"), *_AMOUNTS, *(_fields("PodSpec") if len(template) > 1 else ())]
    raise InputError(f"{label_of(raw)} has no field {words[0]}; {suggestion(words[0], known)}")


def _words(name: str) -> list[str]:
    words = name.split(".")
    for place, word in enumerate(words[:-1]):
        if word in _NAMED:
            return [*words[: place + 1], ".".join(words[place + 1 :])]
    if not all(words):
        raise InputError(f"{name!r} is no field; write names with dots between them")
    return words


def _fields(kind: str, field: str = "") -> list[str]:
    """The names of the fields of a type, or of one of its fields."""
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


def _made_anew(change: Changed, namespace: str) -> list[Raw]:
    raw, kind = change.after, str(change.after["kind"])
    metadata = {key: value for key, value in raw["metadata"].items() if key not in _NOT_CARRIED}
    named = {"kind": kind, "name": metadata["name"]} | ({"namespace": namespace} if namespace else {})
    gone = named | ({"outright": True} if kind == "Pod" else {})
    return [
        step("delete", gone),
        applied([{**{key: value for key, value in raw.items() if key != "status"}, "metadata": metadata}]),
    ]


def _without_status(after: Raw, before: Raw) -> Raw:
    """The object with its status only where that changes; otherwise it would go back to what it was."""
    if after.get("status") == before.get("status"):
        return {key: value for key, value in after.items() if key != "status"}
    return after


def _differences(before: Any, after: Any, path: str) -> list[str]:
    """What changes, as in `.spec.replicas: 3 -> 5`."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        return [told for name in names for told in _differences(before.get(name), after.get(name), f"{path}.{name}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [told for index, (old, new) in enumerate(pairs) for told in _differences(old, new, f"{path}[{index}]")]
    return [] if before == after else [f"{path}: {_shown(before)} -> {_shown(after)}"]


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (TypeError, ValueError) as error:
        raise PodiumError(f"cannot be shown: {error}") from None
    return text if len(text) <= 80 else f"{text[:79]}…"
