"""The text of a pod of a dump with gaps for what each pod has for itself, through which others like it are read.

What stands around the gaps is compared, byte by byte, with a text that was judged already; what stands in them is
judged by itself. So nothing is decoded, and a pod takes a fraction of what it takes to look into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from struct import Struct

from msgspec.structs import replace

from podium.api.input.dumped_pod_parts import named, own_volumes_of
from podium.api.input.pod_gaps import JUDGES, SHARED, Form, Gap, gaps_in
from podium.api.input.yaml import is_text
from podium.api.pod import Affinity, Pod
from podium.api.selection import NodeSelectorTerm

_CACHE = 16_384
_MAX_BYTES = 65_536
_MAX_LAYOUTS = 32
# What no JSON and no YAML has.
_BETWEEN = b"\0"


class PodStencil:
    """Reads the pods that differ from one in nothing but what each has for itself; made by `stencil_of`."""

    __slots__ = (
        "_addresses",
        "_around",
        "_before",
        "_judged",
        "_layouts",
        "_own_volumes",
        "_places",
        "_pod",
        "_same",
    )

    def __init__(self, text: bytes, pod: Pod, gaps: Sequence[Gap]) -> None:
        places: dict[str, list[int]] = {}
        shared: dict[tuple[str, str], list[int]] = {}
        for number, gap in enumerate(gaps):
            same = shared.setdefault((gap.what, gap.value), []) if gap.what in SHARED else []
            if not same:
                places.setdefault(gap.what, []).append(number)
            same.append(number)
        starts = [0, *(gap.end for gap in gaps)]
        self._before = [
            (text[start : gap.start], gap.start - start, text[gap.end : gap.end + 1])
            for start, gap in zip(starts, gaps, strict=False)
        ]
        self._around = (*(before for before, _, _ in self._before), text[starts[-1] :])
        # By the length of texts, how long all parts of such a text were.
        self._layouts: dict[int, Struct] = {}
        self._pod = pod
        self._places = {what: numbers[0] for what, numbers in places.items()}
        self._judged = [(judge, _all_of(places[what])) for what, judge in JUDGES.items() if what in places]
        bare = [number for number, gap in enumerate(gaps) if gap.is_bare]
        if bare:
            self._judged.append((is_text, _all_of(bare)))
        self._same = [_all_of(numbers) for numbers in shared.values() if len(numbers) > 1]
        addresses = places.get("address", ())
        self._addresses = _all_of(addresses) if len(addresses) > 1 else None
        volume = next((gap.value for gap in gaps if gap.what == "volume"), None)
        self._own_volumes = () if volume is None else own_volumes_of(pod.spec, volume)

    def read(self, text: bytes) -> Pod | None:
        """The pod that the text is; None for one that is not certainly like the stencil's."""
        values = self._laid_out(text) or self._looked_up(text)
        return self._with(values) if values is not None and self._are_right(values) else None

    def _laid_out(self, text: bytes) -> Sequence[str] | None:
        """What is in the gaps, if these are where they were in a text of that length; None where they are not."""
        layout = self._layouts.get(len(text))
        if layout is None:
            return None
        parts = layout.unpack(text)
        if parts[::2] != self._around:
            return None
        values = _BETWEEN.join(parts[1::2]).decode("latin-1").split(_BETWEEN.decode())
        return values if len(values) == len(self._before) else None

    def _looked_up(self, text: bytes) -> Sequence[str] | None:
        """What is in the gaps, from one to the next; None where something else is around them."""
        values: list[str] = []
        place = 0
        for before, length, closing in self._before:
            if not text.startswith(before, place):
                return None
            start = place + length
            place = text.find(closing, start)
            if place < 0:
                return None
            values.append(text[start:place].decode("latin-1"))
        if text[place:] != self._around[-1]:
            return None
        if len(self._layouts) < _MAX_LAYOUTS:
            lengths = zip((len(part) for part in self._around), map(len, values), strict=False)
            sizes = "".join(f"{around}s{own}s" for around, own in lengths)
            self._layouts[len(text)] = Struct(f"{sizes}{len(self._around[-1])}s")
        return values

    def _are_right(self, values: Sequence[str]) -> bool:
        """Whether what is in the gaps is what belongs there."""
        for judge, own in self._judged:
            if not all(map(judge, own(values))):
                return False
        for own in self._same:
            first, *others = own(values)
            if others != [first] * len(others):
                return False
        # They are keys of who owns them, too, of which none may be there twice.
        return self._addresses is None or len({*self._addresses(values)}) == len(self._addresses(values))

    def _with(self, values: Sequence[str]) -> Pod:
        """The pod with these values in the gaps."""
        pod, places = self._pod, self._places
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        metadata = replace(
            metadata,
            name=values[places["name"]],
            uid=values[places["uid"]] if "uid" in places else metadata.uid,
            resource_version=values[places["version"]] if "version" in places else metadata.resource_version,
            creation_timestamp=values[places["creation"]] if "creation" in places else metadata.creation_timestamp,
        )
        node = _kept(values[places["node"]]) if "node" in places else spec.node_name
        volume = values[places["volume"]] if "volume" in places else ""
        affinity = spec.affinity
        spec = named(spec, node, self._own_volumes, volume)
        if affinity is not None and node != pod.spec.node_name:
            spec = replace(spec, affinity=_bound_to(affinity, pod.spec.node_name, node))
        if "start" in places:
            status = replace(status, start_time=_kept(values[places["start"]]))
        return Pod(api_version=pod.api_version, kind=pod.kind, metadata=metadata, spec=spec, status=status)


def _all_of(places: Sequence[int]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Picks what is in those places."""
    if len(places) == 1:
        (place,) = places
        return lambda values: (values[place],)
    return itemgetter(*places)


def stencil_of(text: bytes, pod: Pod, form: Form) -> PodStencil | None:
    """The stencil of a pod in whose text nothing was found that there is something to say about; None without one."""
    gaps = gaps_in(text, pod, form) if len(text) <= _MAX_BYTES else []
    if not any(gap.what == "name" for gap in gaps):
        return None
    stencil = PodStencil(text, pod, gaps)
    return stencil if stencil.read(text) == pod else None


def _bound_to(affinity: Affinity, node: str, other: str) -> Affinity:
    """The affinity of a pod that is bound to the other node as this is to its own."""

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


@lru_cache(maxsize=_CACHE)
def _kept(text: str) -> str:
    """The same text, in memory once however many pods have it."""
    return text
