"""The text of a pod of a dump with gaps for what each pod has for itself, through which others like it are read.

What stands around the gaps is compared, byte by byte, with a text that was judged already; what stands in them is
judged by itself. So nothing is decoded, and a pod takes a fraction of what it takes to look into it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from podium.api.input.dumped_pod_parts import named, own_volumes_of
from podium.api.input.pod_gaps import FORMS, SHARED, TIMES, Form, Gap, gaps_in, is_time
from podium.api.input.yaml import is_text
from podium.api.pod import Affinity, Pod
from podium.api.selection import NodeSelectorTerm

_CACHE = 16_384
_MAX_BYTES = 65_536
_MAX_LAYOUTS = 32
# What no JSON and no YAML has.
_BETWEEN = b"\0"
_METADATA = {"name": "name", "uid": "uid", "version": "resource_version", "creation": "creation_timestamp"}


class ReadPod(NamedTuple):
    """A pod of a dump, and what is kept of its text."""

    pod: Pod
    text: bytes | FilledStencil


@dataclass(frozen=True, slots=True)
class FilledStencil:
    """The text of a pod that a stencil read, of which `gaps` is what stands in these; `bytes` makes it anew."""

    stencil: PodStencil
    gaps: bytes

    def __bytes__(self) -> bytes:
        return self.stencil.filled(self.gaps)


class _Layout(NamedTuple):
    """Where in texts of one length begins what is around the gaps, and where the gaps are."""

    starts: tuple[int, ...]
    gaps: tuple[slice, ...]


class PodStencil:
    """Reads the pods that differ from one in nothing but what each has for itself; made by `stencil_of`."""

    __slots__ = (
        "_addresses",
        "_around",
        "_bare",
        "_closings",
        "_form",
        "_layouts",
        "_metadata",
        "_own",
        "_own_volumes",
        "_pod",
        "_times",
    )

    def __init__(self, text: bytes, pod: Pod, gaps: Sequence[Gap]) -> None:
        groups: dict[tuple[str, str], str] = {}
        forms: list[str] = []
        for number, gap in enumerate(gaps):
            group = f"gap{number}"
            first = groups.setdefault((gap.what, gap.value if gap.what in SHARED else group), group)
            forms.append(f"(?P<{group}>{FORMS[gap.what]})" if first is group else f"(?P={first})")
        self._form = re.compile(_BETWEEN.join(map(str.encode, forms)))
        starts = [0, *(gap.end for gap in gaps)]
        ends = [*(gap.start for gap in gaps), len(text)]
        self._around = tuple(text[start:end] for start, end in zip(starts, ends, strict=True))
        self._closings = tuple(text[gap.end : gap.end + 1] for gap in gaps)
        # By the length of texts, how one of that length was laid out.
        self._layouts: dict[int, _Layout] = {}
        self._pod = pod
        # The first of each kind.
        self._own = {what: group for (what, _), group in reversed(groups.items())}
        self._metadata = [(name, self._own[what]) for what, name in _METADATA.items() if what in self._own]
        self._times = [group for (what, _), group in groups.items() if what in TIMES]
        self._addresses = [group for (what, _), group in groups.items() if what == "address"]
        self._bare = [number for number, gap in enumerate(gaps) if gap.is_bare]
        volume = next((gap.value for gap in gaps if gap.what == "volume"), None)
        self._own_volumes = () if volume is None else own_volumes_of(pod.spec, volume)

    def read(self, text: bytes) -> ReadPod | None:
        """The pod that the text is; None for one that is not certainly like the stencil's."""
        gaps = self._laid_out(text) or self._looked_up(text)
        found = None if gaps is None else self._form.fullmatch(gaps)
        if gaps is None or found is None or not self._are_right(gaps, found):
            return None
        return ReadPod(self._with(found), FilledStencil(self, gaps))

    def filled(self, gaps: bytes) -> bytes:
        """The text in which this stands in the gaps."""
        parts = zip_longest(self._around, gaps.split(_BETWEEN), fillvalue=b"")
        return b"".join(chain.from_iterable(parts))

    def _laid_out(self, text: bytes) -> bytes | None:
        """What is in the gaps, if these are where they were in a text of that length; None where they are not."""
        layout = self._layouts.get(len(text))
        if layout is None or not all(map(text.startswith, self._around, layout.starts)):
            return None
        return _BETWEEN.join(map(text.__getitem__, layout.gaps))

    def _looked_up(self, text: bytes) -> bytes | None:
        """What is in the gaps, from one to the next; None where something else is around them."""
        starts: list[int] = []
        gaps: list[slice] = []
        place = 0
        for before, closing in zip(self._around, self._closings, strict=False):
            if not text.startswith(before, place):
                return None
            starts.append(place)
            begin = place + len(before)
            place = text.find(closing, begin)
            if place < 0:
                return None
            gaps.append(slice(begin, place))
        if text[place:] != self._around[-1]:
            return None
        if len(self._layouts) < _MAX_LAYOUTS:
            self._layouts[len(text)] = _Layout((*starts, place), (*gaps,))
        return _BETWEEN.join(map(text.__getitem__, gaps))

    def _are_right(self, gaps: bytes, found: re.Match[bytes]) -> bool:
        """Whether what is in the gaps, each of its form, is what belongs there beside the others."""
        if not all(map(is_time, {found[group] for group in self._times})):
            return False
        # They are keys of who owns them, too, of which none may be there twice.
        if len(self._addresses) > 1 and len({*found.group(*self._addresses)}) < len(self._addresses):
            return False
        if not self._bare:
            return True
        values = gaps.split(_BETWEEN)
        return all(is_text(values[number].decode()) for number in self._bare)

    def _with(self, found: re.Match[bytes]) -> Pod:
        """The pod with these values in the gaps."""
        pod, own = self._pod, self._own
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        metadata = replace(metadata, **{name: found[group].decode() for name, group in self._metadata})
        node = _kept(found[own["node"]]) if "node" in own else spec.node_name
        volume = found[own["volume"]].decode() if "volume" in own else ""
        affinity = spec.affinity
        spec = named(spec, node, self._own_volumes, volume)
        if affinity is not None and node != pod.spec.node_name:
            spec = replace(spec, affinity=_bound_to(affinity, pod.spec.node_name, node))
        if "start" in own:
            status = replace(status, start_time=_kept(found[own["start"]]))
        return Pod(api_version=pod.api_version, kind=pod.kind, metadata=metadata, spec=spec, status=status)


def stencil_of(text: bytes, pod: Pod, form: Form) -> PodStencil | None:
    """The stencil of a pod in whose text nothing was found that there is something to say about; None without one."""
    gaps = gaps_in(text, pod, form) if len(text) <= _MAX_BYTES else []
    if not any(gap.what == "name" for gap in gaps):
        return None
    stencil = PodStencil(text, pod, gaps)
    found = stencil.read(text)
    return stencil if found is not None and found.pod == pod else None


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
def _kept(text: bytes) -> str:
    """The text, in memory once however many pods have it."""
    return text.decode()
