"""One object of an input: of which kind it is, its typed reading, and what there is to say about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from podium.api.errors import InputError, MalformedError, shown
from podium.api.kinds import Kind, group_of, known_names, read_kind, right_group, right_name
from podium.api.meta import Kubernetes, Raw
from podium.api.plain_pods import plain_pod
from podium.api.pod_group_forms import OLDER_VERSION, from_older_form, in_older_words
from podium.api.reading import read
from podium.api.schemas.slips import slips
from podium.api.schemas.structure import Finding, findings
from podium.api.schemas.suggestion import likely
from podium.api.soundness.objects import validate
from podium.api.validation.objects import find_problems
from podium.api.warnings import InputWarning, Reason, Validation

# What lies in there is read through the structs alone, and otherwise handed on as it is.
_HANDED_ON = re.compile(r"\.(?:containers|initContainers|ephemeralContainers|volumes)\[")
_TEMPLATES = (".spec.template.", ".spec.jobTemplate.")


@dataclass(frozen=True, slots=True)
class ReadObject:
    """An object as written, its namespace filled in; its typed reading, None for a kind that is not read; warnings."""

    raw: Raw
    object: Kubernetes | None
    warnings: tuple[InputWarning, ...] = ()


def read_object(raw: Raw, validation: Validation | None = None) -> ReadObject:
    """The typed reading of an object, validated, with what there is to say about it.

    `raw` holds no nulls but in lists. Without a namespace, an object of a kind that needs one is in `default`.

    `validation` None takes an object that a cluster has stored (it has a uid) as `warn` does. In one that a person
    wrote, a field that there is not is an error in pods and in templates of pods, where it changes what happens, and a
    warning elsewhere. Raises InputError.
    """
    plain = plain_pod(raw)
    return ReadObject(*plain) if plain is not None else read_closely(raw, validation)


def read_closely(raw: Raw, validation: Validation | None = None) -> ReadObject:
    """As `read_object`, whatever the object is like. Raises InputError."""
    kind = kind_of(raw)
    if kind is None:
        return ReadObject(raw, None, tuple(_judged(_unknown_kind(raw), raw, validation)))
    raw = written = _with_namespace(raw, kind)
    is_older = written["apiVersion"] == OLDER_VERSION
    if is_older:
        raw = from_older_form(written, kind.api_version)
    try:
        typed = read(raw, kind.type)
        warnings = tuple(_judged(_warnings(written, raw, typed, validation), raw, validation))
        validate(typed)
    except InputError as error:
        if is_older:
            error.path = in_older_words(error.path)
        raise error.located(object=label_of(raw)) from None
    return ReadObject(raw, typed, warnings)


def kind_of(raw: Raw) -> Kind | None:
    """The kind of the object, None when Podium does not read it. Raises InputError when it names none."""
    for field in ("apiVersion", "kind"):
        value = raw.get(field)
        if not isinstance(value, str) or not value:
            raise InputError(
                f"{shown(value)} is not text" if value else "is missing, and must be given", path=f".{field}"
            )
    group, name = group_of(raw["apiVersion"]), raw["kind"]
    right = right_group(group, name)
    if right is not None:
        raise InputError(
            f"{shown(raw['apiVersion'])} has no kind {name}; write {right + '/v1' if right else 'v1'}",
            path=".apiVersion",
        )
    meant = right_name(group, name)
    if meant is not None:
        raise InputError(f"{shown(raw['apiVersion'])} has no kind {shown(name)}; write {meant}", path=".kind")
    return read_kind(group, name)


def metadata_of(raw: Raw) -> Raw:
    """The object's metadata, empty where there are none."""
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def label_of(raw: Raw) -> str:
    """The object as errors name it: `Pod default/web`, or the kind alone for one without a name."""
    kind, metadata = raw.get("kind"), metadata_of(raw)
    if not isinstance(kind, str):
        return ""
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return kind
    return f"{kind} {namespace}/{name}" if isinstance(namespace, str) and namespace else f"{kind} {name}"


def _with_namespace(raw: Raw, kind: Kind) -> Raw:
    """The object with the namespace `default` where it needs one and has none; the argument is not changed."""
    metadata = raw.get("metadata", {})
    if not kind.namespaced or not isinstance(metadata, dict) or metadata.get("namespace"):
        return raw
    return {**raw, "metadata": {**metadata, "namespace": "default"}}


def _judged(warnings: Iterator[InputWarning], raw: Raw, validation: Validation | None) -> Iterator[InputWarning]:
    """The warnings that stay warnings. Raises InputError for the first that is an error instead."""
    for warning in warnings:
        if validation == "strict" and warning.is_refused_when_strict:
            raise warning.as_error()
        if validation is None and warning.reason == "unknown-field" and _is_a_persons_pod(raw, warning.path):
            problem = f"{warning.message}; with --validate=warn it is left out"
            raise InputError(problem, path=warning.path)
        yield warning


def _is_a_persons_pod(raw: Raw, path: str) -> bool:
    """Whether the path lies in a pod, or in a template of pods, that no cluster has stored."""
    return not metadata_of(raw).get("uid") and (raw["kind"] == "Pod" or path.startswith(_TEMPLATES))


def _warnings(written: Raw, raw: Raw, typed: Kubernetes, validation: Validation | None) -> Iterator[InputWarning]:
    """What there is to say about an object as it was written, and as it is kept.

    Raises MalformedError for a value that nothing can be made of.
    """
    found = findings(written)
    for finding in found:
        if not finding.is_unknown and not _HANDED_ON.search(finding.path):
            raise MalformedError(finding.message, path=finding.path)
    if validation == "ignore":
        return
    yield from (_warning(finding, raw) for finding in found)
    told = {finding.path for finding in found}
    is_older = written["apiVersion"] == OLDER_VERSION
    for problem in find_problems(raw):
        path = in_older_words(problem.path) if is_older else problem.path
        if path not in told:
            yield InputWarning(problem.message, "invalid", object=label_of(raw), path=path)
    yield from (InputWarning(message, "slip", object=label_of(raw), path=path) for path, message in slips(typed))


def _warning(finding: Finding, raw: Raw) -> InputWarning:
    reason: Reason = "unknown-field" if finding.is_unknown else "invalid"
    return InputWarning(finding.message, reason, object=label_of(raw), path=finding.path)


def _unknown_kind(raw: Raw) -> Iterator[InputWarning]:
    """A kind that a group of Kubernetes' own does not have, and nearly has."""
    known = known_names(group_of(raw["apiVersion"]))
    if known is None or raw["kind"] in known:
        return
    near = likely(raw["kind"], known)
    if near:
        message = f"{shown(raw['apiVersion'])} has no kind {shown(raw['kind'])}; did you mean {' or '.join(near)}?"
        yield InputWarning(message, "invalid", object=label_of(raw), path=".kind")
