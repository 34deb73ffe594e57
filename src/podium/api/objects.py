"""The reading of one object of an input: its kind, its typed reading, and its findings.

A cluster has few distinct pod specifications, and each is read, validated and admitted once: pods of one class share
the reading and the wire form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from podium.api.errors import (
    REFUSED,
    InputError,
    InputWarning,
    MalformedError,
    Reason,
    Validation,
    field_path,
    likely,
    shown,
)
from podium.api.forms import form_of
from podium.api.kinds import Kind, group_of, known_names, read_kind, right_group, right_name
from podium.api.meta import Kubernetes, ObjectMeta, Raw, object_at
from podium.api.names import subdomain_problem
from podium.api.pod import Pod, PodSpec, Quantity
from podium.api.policy import POLICY_ANNOTATION, PREEMPTION_POLICIES, PriorityClass
from podium.api.quantity import CPU, is_bytes, milli_value
from podium.api.reading import read
from podium.api.schemas.schema import findings
from podium.api.validation.findings import Findings, Place
from podium.api.validation.objects import JUDGED_ANNOTATIONS, check_usable, find_problems, validate
from podium.api.workloads import pod_template

# Values below these paths are read through the structs alone, and otherwise passed on unchanged.
_HANDED_ON = re.compile(r"\.(?:containers|initContainers|ephemeralContainers|volumes)\[")
_TEMPLATES = (".spec.template.", ".spec.jobTemplate.")


class ReadObject(msgspec.Struct, frozen=True):
    """An object as written, with its namespace; its typed reading, None for a kind that is not read; warnings."""

    raw: Raw
    object: Kubernetes | None
    warnings: tuple[InputWarning, ...] = ()


def read_object(raw: Raw, validation: Validation | None = None) -> ReadObject:
    """Return the validated typed reading of an object, with its warnings.

    `raw` holds no nulls except in lists. Without a namespace, a namespaced object is in `default`.

    With `validation` None, an object from a cluster (it has a uid) is treated as with `warn`. In a user's object, an
    unknown field is an error in pods and pod templates, where it changes the result, and a warning elsewhere. Raises
    InputError.
    """
    plain = plain_pod(raw)
    return ReadObject(*plain) if plain is not None else read_closely(raw, validation)


def read_closely(raw: Raw, validation: Validation | None = None) -> ReadObject:
    """Read an object as `read_object` does, without the fast path. Raises InputError."""
    kind = kind_of(raw)
    if kind is None:
        return ReadObject(raw, None, tuple(_checked_warnings(_unknown_kind(raw), raw, validation)))
    metadata = raw.get("metadata", {})
    if kind.namespaced and isinstance(metadata, dict) and not metadata.get("namespace"):
        raw = {**raw, "metadata": {**metadata, "namespace": "default"}}
    written = raw
    form = form_of(written["apiVersion"], kind.name)
    if written["apiVersion"] in kind.other_versions:
        raw = {**(written if form is None else form.to_stored(written)), "apiVersion": kind.api_version}
    try:
        typed = read(raw, kind.type)
        warnings = tuple(_checked_warnings(_warnings(written, raw, typed, validation), raw, validation))
        validate(typed, raw)
    except InputError as error:
        if form is not None:
            error.path = form.in_its_words(error.path)
        raise error.located(object=label_of(raw)) from None
    return ReadObject(raw, typed, warnings)


def kind_of(raw: Raw) -> Kind | None:
    """Return the kind of the object, None if Podium does not read it. Raises InputError if it names none."""
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
    """Return the object's metadata, empty if it has none."""
    return object_at(raw, "metadata")


def label_of(raw: Raw) -> str:
    """Return the object as errors name it: `Pod default/web`, or the kind alone for one without a name."""
    kind, metadata = raw.get("kind"), metadata_of(raw)
    if not isinstance(kind, str):
        return ""
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return kind
    return f"{kind} {namespace}/{name}" if isinstance(namespace, str) and namespace else f"{kind} {name}"


def _checked_warnings(
    warnings: Iterator[InputWarning], raw: Raw, validation: Validation | None
) -> Iterator[InputWarning]:
    """Yield the warnings that stay warnings. Raises InputError for the first that is an error instead."""
    for warning in warnings:
        if validation == "strict" and warning.reason in REFUSED:
            raise InputError(warning.message, object=warning.object, path=warning.path)
        # Objects with a uid come from a cluster.
        is_of_user = validation is None and not metadata_of(raw).get("uid")
        is_in_pod = raw["kind"] == "Pod" or warning.path.startswith(_TEMPLATES)
        if warning.reason == "unknown-field" and is_of_user and is_in_pod:
            raise InputError(f"{warning.message}; with --validate=warn it is left out", path=warning.path)
        yield warning


def _warnings(written: Raw, raw: Raw, typed: Kubernetes, validation: Validation | None) -> Iterator[InputWarning]:
    """Yield the warnings about an object in its written and in its stored form.

    Raises MalformedError for an unusable value.
    """
    found = findings(written)
    for finding in found:
        if not finding.is_unknown and not _HANDED_ON.search(finding.path):
            raise MalformedError(finding.message, path=finding.path)
    if validation == "ignore":
        return
    for finding in found:
        reason: Reason = "unknown-field" if finding.is_unknown else "invalid"
        yield InputWarning(finding.message, reason, object=label_of(raw), path=finding.path)
    reported = {finding.path for finding in found}
    form = form_of(written["apiVersion"], written["kind"])
    for problem in find_problems(raw):
        path = problem.path if form is None else form.in_its_words(problem.path)
        if path not in reported:
            yield InputWarning(problem.message, "invalid", object=label_of(raw), path=path)
    yield from (InputWarning(message, "slip", object=label_of(raw), path=path) for path, message in _slips(typed))


def _unknown_kind(raw: Raw) -> Iterator[InputWarning]:
    """Yield a warning for a kind that a built-in group does not have, if a similar one exists."""
    known = known_names(group_of(raw["apiVersion"]))
    if known is None or raw["kind"] in known:
        return
    near = likely(raw["kind"], known)
    if near:
        message = f"{shown(raw['apiVersion'])} has no kind {shown(raw['kind'])}; did you mean {' or '.join(near)}?"
        yield InputWarning(message, "invalid", object=label_of(raw), path=".kind")


_CACHE = 1_024
_NODE = "nodeName"
# The most recently found specifications, by the identity of their wire form.
_SHARED: dict[int, SharedSpec] = {}
_SORTS = 2_048
_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec"))
_METADATA = frozenset(("name", "namespace", "labels", "annotations"))
# Larger annotations are not typical of a class of pods; this is far below the size limit of all annotations.
_SMALL = 10_000
_ENCODER = msgspec.msgpack.Encoder()
_part = lru_cache(maxsize=_CACHE)(msgspec.msgpack.decode)


class SharedSpec(msgspec.Struct, eq=False):
    """A valid specification in both forms, and its last admission result.

    `admitted` contains its context, which is compared by identity, since admission may depend on it.
    """

    raw: Raw
    spec: PodSpec
    admitted: tuple[object, SharedSpec] | None = None

    def on(self, node: str, raw: Raw) -> SharedSpec:
        """Return the same specification with a node's name, with the fields in the order of ``raw``."""
        own = {name: node if name == _NODE else self.raw[name] for name in raw}
        return SharedSpec(own, msgspec.structs.replace(self.spec, node_name=node))

    def has_label_keys(self) -> bool:
        """Return whether the result depends on the pod's labels (matchLabelKeys, mismatchLabelKeys)."""
        return b"atchLabelKeys" in _ENCODER.encode(self.raw)


def shared_spec(raw: object) -> SharedSpec | None:
    """Return the specification that is shared with all equal ones; None for an invalid one.

    Pods on different nodes share everything except the node's name. Reading and validation report the problems of an
    invalid one (`podium.store.verbs.readings`).
    """
    # A shared wire form is recognized by its identity, which stays unique because it is kept alive.
    shared = _SHARED.get(id(raw))
    if shared is not None and shared.raw is raw:
        return shared
    node = raw.get(_NODE) if isinstance(raw, dict) else None
    try:
        if isinstance(raw, dict) and isinstance(node, str):
            node.encode()
            found = _equal({name: value for name, value in raw.items() if name != _NODE})
            return None if found is None else found.on(node, raw)
        return _equal(raw)
    except (InputError, msgspec.ValidationError, OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return None


def _equal(raw: object) -> SharedSpec | None:
    # Equal encodings mean equal JSON values; unlike JSON, this encoding distinguishes null from NaN.
    found = _known(_ENCODER.encode(raw))
    return found if found.raw == raw else None


@lru_cache(maxsize=_CACHE)
def _known(packed: bytes) -> SharedSpec:
    raw = msgspec.msgpack.decode(packed)
    spec = msgspec.convert(raw, PodSpec)
    check_usable(Place(raw, Findings()), "PodSpec")
    # Pods of a DaemonSet differ only in the affinity that names their node, and share the rest.
    shared = SharedSpec({name: _part(_ENCODER.encode(value)) for name, value in raw.items()}, spec)
    if len(_SHARED) >= _CACHE:
        _SHARED.clear()
    _SHARED[id(shared.raw)] = shared
    return shared


def plain_pod(raw: Raw) -> tuple[Raw, Pod] | None:
    """Return a valid pod with its namespace, and its reading; None for any other object, and one with findings.

    Pods of one class share the wire form and the reading of their specification.
    """
    if raw.get("kind") != "Pod" or raw.get("apiVersion") != "v1" or raw.keys() != _FIELDS:
        return None
    metadata = raw["metadata"]
    if not isinstance(metadata, dict) or not metadata.keys() <= _METADATA:
        return None
    name, annotations = metadata.get("name"), metadata.get("annotations", {})
    if not isinstance(name, str) or not name or subdomain_problem(name) is not None:
        return None
    shared = shared_spec(raw["spec"])
    if shared is None:
        return None
    if not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
    try:
        if not _are_plain(annotations):
            return None
        sort = _ENCODER.encode((metadata["namespace"], metadata.get("labels", {}), list(annotations)))
        if len(sort) > _SMALL or not _is_right(shared, sort):
            return None
        reading = Pod(api_version="v1", kind="Pod", metadata=msgspec.convert(metadata, ObjectMeta), spec=shared.spec)
    except (msgspec.ValidationError, OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return None
    return {**raw, "metadata": metadata, "spec": shared.raw}, reading


def _are_plain(annotations: object) -> bool:
    """Return whether the content of the annotations has no effect on validation."""
    if not isinstance(annotations, dict) or not JUDGED_ANNOTATIONS.isdisjoint(annotations):
        return False
    length = 0
    for name, value in annotations.items():
        if not isinstance(value, str):
            return False
        length += len(name) + len(value)
    return length < _SMALL


@lru_cache(maxsize=_SORTS)
def _is_right(shared: SharedSpec, sort: bytes) -> bool:
    """Return whether pods of this class have no findings, whatever their names."""
    namespace, labels, names = msgspec.msgpack.decode(sort)
    if any("ephemeral" in volume for volume in shared.raw.get("volumes", ())):
        # The name of its claim depends on the pod.
        return False
    metadata = {"name": "any", "namespace": namespace, "labels": labels, "annotations": dict.fromkeys(names, "")}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": shared.raw}
    try:
        return not read_closely(raw, "warn").warnings
    except InputError:
        return False


# Valid but implausible values: 0.4 of a byte of memory, 500 whole cores, an unknown preemption policy. kube-apiserver
# also warns about fractions of bytes (pkg/api/pod/warnings.go); the other rules are Podium's own.
_POLICY_PREFIX, _, _POLICY_NAME = POLICY_ANNOTATION.rpartition("/")
_LEAST_BYTES = 1 << 20
_MOST_CORES = 200
_MILLI = 1_000


def _slips(object_: Kubernetes) -> Iterator[tuple[str, str]]:
    """Yield the implausible values in a pod or a workload's template: each path, and the probable intention."""
    if isinstance(object_, PriorityClass):
        yield from _in_annotations(object_.metadata.annotations, ".metadata.annotations")
    if (found := pod_template(object_)) is not None:
        template, path = found
        yield from _in_pod(template.spec, f"{path}.spec")
        yield from _in_annotations(template.metadata.annotations, f"{path}.metadata.annotations")


def _in_annotations(annotations: Mapping[str, str], path: str) -> Iterator[tuple[str, str]]:
    """Yield a preemption policy that does not exist, and annotations that probably are meant to hold one."""
    for key, value in annotations.items():
        prefix, _, name = key.rpartition("/")
        if key == POLICY_ANNOTATION:
            if value not in PREEMPTION_POLICIES:
                meant = " or ".join(likely(value, PREEMPTION_POLICIES) or PREEMPTION_POLICIES)
                yield field_path(path, key), f"{shown(value)} is not a preemption policy, and ignored; write {meant}"
        elif prefix == _POLICY_PREFIX and likely(name, [_POLICY_NAME]):
            yield field_path(path, key), f"is not an annotation that Podium reads; did you mean {POLICY_ANNOTATION}?"


def _in_pod(spec: PodSpec, path: str) -> Iterator[tuple[str, str]]:
    lists = (("containers", spec.containers), ("initContainers", spec.init_containers))
    places = [
        (f"{path}.{field}[{index}].resources", one.resources) for field, all_ in lists for index, one in enumerate(all_)
    ]
    for place, resources in (*places, (f"{path}.resources", spec.resources)):
        if resources is not None:
            for part, amounts in (("requests", resources.requests), ("limits", resources.limits)):
                problems = ((name, _slip(name, amount)) for name, amount in amounts.items())
                yield from ((field_path(f"{place}.{part}", name), problem) for name, problem in problems if problem)


@lru_cache(maxsize=65_536)
def _slip(name: str, amount: Quantity) -> str:
    """Return the probably intended amount, or ""."""
    try:
        milli = milli_value(amount)
    except ValueError:
        return ""
    digits = str(amount).removesuffix("m")
    if is_bytes(name) and milli % _MILLI:
        return f"{shown(amount)} is not a whole number of bytes; did you mean {digits}Mi?"
    if not digits.isdecimal():
        return ""
    if is_bytes(name) and 0 < milli < _LEAST_BYTES * _MILLI:
        return f"{shown(amount)} is {milli // _MILLI} bytes; did you mean {milli // _MILLI}Mi?"
    if name == CPU and str(amount) == digits and milli >= _MOST_CORES * _MILLI:
        return f"{shown(amount)} is {milli // _MILLI} whole cores; did you mean {digits}m?"
    return ""
