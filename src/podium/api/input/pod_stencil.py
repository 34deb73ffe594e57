"""A stencil: the text of a dumped pod with gaps for pod-specific values, which reads similar pods.

The text around the gaps is compared byte by byte with a text that was validated already; the content of the gaps is
validated separately. Nothing is decoded, so a pod takes a fraction of the time of parsing. The wire form of such pods
comes from a template: that of one pod, and the place of each value of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any, NamedTuple, SupportsBytes, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podium.api.input import json, pod_gaps, yaml
from podium.api.meta import Raw, object_at
from podium.api.names import MAX_LABEL
from podium.api.pod import Affinity, Pod
from podium.api.selectors import NodeSelectorTerm

_CACHE = 16_384
_MAX_BYTES = 65_536
_MAX_LAYOUTS = 32
_MAX_OWNERS = 1_024
_MAX_STENCILS = 4
BETWEEN = b" "
"""The separator of values, which no usual value contains."""
_BETWEEN = BETWEEN.decode()

_METADATA = {"name": "name", "uid": "uid", "version": "resource_version", "creation": "creation_timestamp"}


class ReadPod(NamedTuple):
    """A dumped pod, and the stored form of its text."""

    pod: Pod
    text: SupportsBytes


class FilledStencil(Struct, frozen=True, gc=False):
    """The text of a pod that a stencil read, with the content of its `gaps`; `bytes` reconstructs it."""

    stencil: PodStencil
    gaps: bytes

    def __bytes__(self) -> bytes:
        return filled(self.stencil.around, self.gaps)

    @property
    def values(self) -> list[str]:
        """The pod's own values, for `PodStencil.template`."""
        return self.gaps.decode().split(_BETWEEN)


def filled(around: Sequence[bytes], gaps: bytes) -> bytes:
    """Return the text with this content in the gaps."""
    return b"".join(chain.from_iterable(zip_longest(around, gaps.split(BETWEEN), fillvalue=b"")))


class _Layout(NamedTuple):
    """The positions of the fixed text and of the gaps, for texts of one length."""

    starts: tuple[int, ...]
    gaps: tuple[slice, ...]


class PodStencil:
    """A reader of pods that differ from one pod only in pod-specific values; made by `stencil_of`."""

    def __init__(self, text: bytes, pod: Pod, gaps: Sequence[pod_gaps.Gap]) -> None:
        # By type and what distinguishes it, the number of each value.
        values: dict[tuple[str, object], int] = {}
        forms: list[str] = []
        numbers: list[int] = []
        for place, gap in enumerate(gaps):
            count = len(values)
            number = values.setdefault((gap.what, gap.value if gap.what in pod_gaps.SHARED else place), count)
            forms.append(f"({pod_gaps.FORMS[gap.what]})" if number == count else rf"\{number + 1}")
            numbers.append(number)
        self._form = re.compile(BETWEEN.join(map(str.encode, forms)))
        starts = [0, *(gap.end for gap in gaps)]
        ends = [*(gap.start for gap in gaps), len(text)]
        self.around = tuple(text[start:end] for start, end in zip(starts, ends, strict=True))
        """The text around the gaps."""
        self.numbers = tuple(numbers)
        """The number of the value in each gap; those that are equal in every pod have one number."""
        self._closings = tuple(text[gap.end : gap.end + 1] for gap in gaps)
        # The layouts by text length.
        self._layouts: dict[int, _Layout] = {}
        self._pod = pod
        # The first of each type.
        self._own = {what: number for (what, _), number in reversed(values.items())}
        self._metadata = [(name, self._own[what]) for what, name in _METADATA.items() if what in self._own]
        self._labels = [(gap.field, self._own[gap.what]) for gap in gaps if gap.field in pod_gaps.LABELS]
        self._is_hostname = any(gap.field == pod_gaps.HOSTNAME for gap in gaps)
        self._times = [number for (what, _), number in values.items() if what in pod_gaps.TIMES]
        self._addresses = [number for (what, _), number in values.items() if what == "address"]
        self._bare = [number for number, gap in enumerate(gaps) if gap.is_bare]
        self._counts = frozenset(number for number, gap in enumerate(gaps) if gap.what == "count")
        # Made on first use; empty if there is none.
        self._template: tuple[WireTemplate, ...] | None = None
        volume = next((gap.value for gap in gaps if gap.what == "volume"), None)
        self._own_volumes = tuple(
            place for place, own in enumerate(pod.spec.volumes) if volume is not None and own.name == volume
        )

    def read(self, text: bytes) -> ReadPod | None:
        """Return the pod of the text; None unless it certainly matches the stencil."""
        layout = self._layouts.get(len(text))
        if layout is not None and all(map(text.startswith, self.around, layout.starts)):
            return self.read_gaps(BETWEEN.join(map(text.__getitem__, layout.gaps)))
        gaps = self._looked_up(text)
        return None if gaps is None else self.read_gaps(gaps)

    def read_gaps(self, gaps: bytes) -> ReadPod | None:
        """Return the pod with this content in the gaps; None unless each has its usual form and fits the others."""
        found = self._form.fullmatch(gaps)
        if found is None:
            return None
        own = found.groups()
        if not all(map(pod_gaps.is_time, {own[number] for number in self._times})):
            return None
        if self._labels or self._is_hostname:
            # A name of the usual form is a label's value if it is not too long, and a hostname if it also has no dot.
            name = own[self._own["name"]]
            if len(name) > MAX_LABEL or (self._is_hostname and b"." in name):
                return None
        # They also are keys of managed fields, which must be unique.
        addresses = self._addresses
        if len(addresses) > 1 and len({own[number] for number in addresses}) < len(addresses):
            return None
        if self._bare:
            values = gaps.split(BETWEEN)
            if not all(yaml.is_text(values[number].decode()) for number in self._bare):
                return None
        return ReadPod(self._with(own), FilledStencil(self, gaps))

    def template(self, form: pod_gaps.TextForm) -> WireTemplate | None:
        """Return the template of the wire form of all pods; None if it takes a full parse."""
        if self._template is None:
            found = template_of(self.around, self._counts, form)
            self._template = () if found is None else (found,)
        return self._template[0] if self._template else None

    def distinct(self, gaps: bytes) -> bytes:
        """Return the values by their numbers, from the content of the gaps."""
        return BETWEEN.join(dict(zip(self.numbers, gaps.split(BETWEEN), strict=True)).values())

    def _looked_up(self, text: bytes) -> bytes | None:
        """Return the content of the gaps by searching from one to the next; None if the text around them differs."""
        starts: list[int] = []
        gaps: list[slice] = []
        place = 0
        for before, closing in zip(self.around, self._closings, strict=False):
            if not text.startswith(before, place):
                return None
            starts.append(place)
            begin = place + len(before)
            place = text.find(closing, begin)
            if place < 0:
                return None
            gaps.append(slice(begin, place))
        if text[place:] != self.around[-1]:
            return None
        if len(self._layouts) < _MAX_LAYOUTS:
            self._layouts[len(text)] = _Layout((*starts, place), (*gaps,))
        return BETWEEN.join(map(text.__getitem__, gaps))

    def _with(self, values: Sequence[bytes]) -> Pod:
        """Return the pod with these values, by their numbers."""
        pod, own = self._pod, self._own
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        metadata = replace(metadata, **{name: values[number].decode() for name, number in self._metadata})
        if self._labels:
            labels = {label: values[number].decode() for label, number in self._labels}
            metadata = replace(metadata, labels={**metadata.labels, **labels})
        node = _interned_text(values[own["node"]]) if "node" in own else spec.node_name
        affinity = spec.affinity
        if affinity is not None and node != spec.node_name:
            affinity = _bound_to(affinity, spec.node_name, node)
        volumes = spec.volumes
        if self._own_volumes:
            name, places = values[own["volume"]].decode(), self._own_volumes
            volumes = tuple([replace(one, name=name) if at in places else one for at, one in enumerate(volumes)])
        spec = replace(spec, node_name=node, affinity=affinity, volumes=volumes)
        if "start" in own:
            status = replace(status, start_time=_interned_text(values[own["start"]]))
        return Pod(api_version=pod.api_version, kind=pod.kind, metadata=metadata, spec=spec, status=status)


def stencil_of(text: bytes, pod: Pod, form: pod_gaps.TextForm) -> PodStencil | None:
    """Return the stencil of a pod without findings; None if its text has no gap for the name."""
    gaps = pod_gaps.gaps_in(text, pod, form) if len(text) <= _MAX_BYTES else ()
    if not any(gap.what == "name" for gap in gaps):
        return None
    stencil = PodStencil(text, pod, gaps)
    found = stencil.read(text)
    return stencil if found is not None and found.pod == pod else None


@lru_cache(maxsize=_CACHE)
def _interned_text(text: bytes) -> str:
    """Return the interned text, shared by all pods that have it."""
    return text.decode()


def _bound_to(affinity: Affinity, node: str, other: str) -> Affinity:
    """Return the affinity of a pod that is bound to the other node as this one is to its own."""

    def bound(term: NodeSelectorTerm) -> NodeSelectorTerm:
        fields = (
            replace(field, values=tuple(other if value == node else value for value in field.values))
            for field in term.match_fields
        )
        return replace(term, match_fields=tuple(fields))

    node_affinity = affinity.node_affinity
    if node_affinity is None or node_affinity.required is None:
        return affinity
    required = node_affinity.required
    if not any(node in field.values for term in required.node_selector_terms for field in term.match_fields):
        return affinity
    required = replace(required, node_selector_terms=tuple(map(bound, required.node_selector_terms)))
    return replace(affinity, node_affinity=replace(node_affinity, required=required))


class PodStencils:
    """The stencils of the most recent owners."""

    def __init__(self, form: pod_gaps.TextForm) -> None:
        self._form = form
        self._by_owner: dict[tuple[bytes, object, object], OwnerStencils] = {}

    def of(self, text: bytes, common: Raw) -> OwnerStencils:
        """Return those for the owner of the pod in the text, within a List with such common content."""
        opening, closing = self._form.owners
        start = text.find(opening)
        owner = b"" if start < 0 else text[start : text.find(closing, start)]
        key = owner, common.get("apiVersion"), common.get("kind")
        # Least recently used owners are evicted first.
        found = self._by_owner.pop(key, None)
        if found is None:
            found = OwnerStencils(self._form)
            if len(self._by_owner) == _MAX_OWNERS:
                del self._by_owner[next(iter(self._by_owner))]
        self._by_owner[key] = found
        return found


class OwnerStencils:
    """The stencils of the pods of one owner, the newest first."""

    __slots__ = ("_form", "_next", "_patience", "_stencils", "_unlike")

    def __init__(self, form: pod_gaps.TextForm) -> None:
        self._form = form
        self._stencils: list[PodStencil] = []
        # The pod that the next stencil is made of, as soon as there is another one.
        self._next: tuple[bytes, Pod] | None = None
        self._unlike = 0
        self._patience = form.patience

    def read(self, text: bytes) -> ReadPod | None:
        """Return the pod of the text; None unless it certainly matches an earlier one."""
        for stencil in self._newest_first():
            found = stencil.read(text)
            if found is not None:
                return found
        return None

    def like(self, around: Sequence[bytes]) -> PodStencil | None:
        """Return the stencil with this text around its gaps."""
        return next((stencil for stencil in self._newest_first() if stencil.around == around), None)

    def learn(self, text: bytes, pod: Pod) -> None:
        """Record a text of this pod that no stencil read; after several, a stencil is made of one."""
        self._unlike += 1
        if self._unlike == self._patience:
            # If a stencil matches no other pod, wait longer before making the next.
            self._unlike = 0
            self._patience *= 2
            self._next = text, pod

    def _newest_first(self) -> list[PodStencil]:
        if self._next is not None:
            stencil = stencil_of(*self._next, self._form)
            self._next = None
            if stencil is not None:
                self._stencils = [stencil, *self._stencils][:_MAX_STENCILS]
        return self._stencils


Places: TypeAlias = "dict[Any, int | Places]"
"""By key or index, the number of the value there, or the places within."""


class WireTemplate:
    """The wire form of similar pods, or a part of it, made from the values of one pod in the order of its text.

    Parts without own values are shared by all pods, and must not be changed. The ``numbers`` are those of the values.
    """

    __slots__ = ("_counts", "_part", "_places", "_times", "numbers")

    def __init__(self, part: Any, places: Places, counts: frozenset[int]) -> None:
        self._part = part
        self._places = places
        # The values that are integers.
        self._counts = counts
        # The times in conditions, or the numbers of their values; found on first use.
        self._times: list[str | int] | None = None
        self.numbers = tuple(_numbers(places))

    def of(self, values: Sequence[str]) -> Any:
        """Return the wire form of the pod with these values."""
        return self._filled(self._part, self._places, values)

    def condition_times(self, values: Sequence[str]) -> list[str]:
        """Return the times in the conditions of the wire form."""
        if self._times is None:
            places: Any = object_at(self._places, "status", "conditions")
            conditions = self._part.get("status", {}).get("conditions", ())
            self._times = times_in({**each, **places.get(index, {})} for index, each in enumerate(conditions))
        return [time if isinstance(time, str) else values[time] for time in self._times]

    def apart(self, name: str) -> tuple[WireTemplate, dict[str, WireTemplate]]:
        """Return the template without the values within parts of a section, and by name the templates of these parts.

        The former makes a new section for each pod.
        """
        places = self._places.get(name)
        if not isinstance(places, dict):
            return self, {}
        parts = {key: place for key, place in places.items() if isinstance(place, dict)}
        own = {key: place for key, place in places.items() if key not in parts}
        section = self._part[name]
        return WireTemplate(self._part, {**self._places, name: own}, self._counts), {
            key: WireTemplate(section[key], place, self._counts) for key, place in parts.items()
        }

    def on(self, raw: Raw, values: Sequence[str]) -> WireTemplate:
        """Return the template of another wire form, of the pod with these values, which has them in the same places."""
        return WireTemplate(_marked(raw, self._places, values), self._places, self._counts)

    def _filled(self, part: Any, places: Places, values: Sequence[str]) -> Any:
        filled, keys = part.copy(), {}
        for key, place in places.items():
            if isinstance(place, dict):
                filled[key] = self._filled(part[key], place, values)
            elif isinstance(part[key], dict):
                # The value is in the key, as of managed fields.
                keys[key] = pod_gaps.address_key(values[place])
            else:
                filled[key] = int(values[place]) if place in self._counts else values[place]
        return _renamed(filled, keys) if keys else filled


def _renamed(part: Raw, keys: Mapping[str, str]) -> Raw:
    return {keys.get(key, key): value for key, value in part.items()}


def _marked(part: Any, places: Places, values: Sequence[str]) -> Any:
    """Return a part of a pod's wire form with the places' own keys instead of those with its values."""
    marked, keys = part.copy(), {}
    for key, place in places.items():
        if isinstance(place, dict):
            marked[key] = _marked(part[key], place, values)
        elif isinstance(key, str) and pod_gaps.MARKED_KEY.fullmatch(key) is not None:
            keys[pod_gaps.address_key(values[place])] = key
    return _renamed(marked, keys) if keys else marked


def times_in(conditions: Iterable[Raw]) -> list[Any]:
    """Return the times in conditions, or what stands for them."""
    times = (condition.get(name) for condition in conditions for name in ("lastTransitionTime", "lastHeartbeatTime"))
    return [time for time in times if time not in (None, "")]


def template_of(around: Sequence[bytes], counts: frozenset[int], form: pod_gaps.TextForm) -> WireTemplate | None:
    """Return the template of the pods with this text around their values, of which ``counts`` are numbers.

    None if a value is not one in the wire form, such as part of another key than an address of managed fields.
    """
    number = len(around) - 1
    marks = (f"{pod_gaps.MARK}{place}" for place in range(number))
    written = ((f'"{mark}"' if place in counts else mark).encode() for place, mark in enumerate(marks))
    raw = json.without_nulls(form.decode(b"".join(chain.from_iterable(zip_longest(around, written, fillvalue=b"")))))
    found = WireTemplate(raw, _places_in(raw), counts)
    return found if len(found.numbers) == number else None


def _places_in(part: Any) -> Places:
    found: Places = {}
    for key, value in part.items() if type(part) is dict else enumerate(part):
        # Few texts and keys hold a marker, which a search shows faster than a pattern.
        if type(key) is str and pod_gaps.MARK in key and (mark := pod_gaps.MARKED_KEY.fullmatch(key)) is not None:
            found[key] = int(mark[1])
        elif type(value) is str:
            if pod_gaps.MARK in value and (mark := pod_gaps.MARKED.fullmatch(value)) is not None:
                found[key] = int(mark[1])
        elif type(value) in (dict, list) and (places := _places_in(value)):
            found[key] = places
    return found


def _numbers(places: Places) -> Iterator[int]:
    for place in places.values():
        if isinstance(place, int):
            yield place
        else:
            yield from _numbers(place)
