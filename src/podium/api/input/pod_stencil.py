"""A stencil: the text of a dumped pod with gaps for pod-specific values, which reads similar pods.

The text around the gaps is compared byte by byte with a text that was validated already; the content of the gaps is
validated separately. Nothing is decoded, so a pod takes a fraction of the time of parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, zip_longest
from typing import NamedTuple, SupportsBytes

from msgspec.structs import replace

from podium.api.input.dumped_pod_parts import bound_to, named, own_volumes_of
from podium.api.input.pod_gaps import FORMS, SHARED, TIMES, Gap, is_time
from podium.api.input.yaml import is_text
from podium.api.names import MAX_LABEL
from podium.api.pod import Pod

_CACHE = 16_384
_MAX_BYTES = 65_536
_MAX_LAYOUTS = 32
# A separator that neither JSON nor YAML can contain.
_BETWEEN = b"\0"
_METADATA = {"name": "name", "uid": "uid", "version": "resource_version", "creation": "creation_timestamp"}


class ReadPod(NamedTuple):
    """A dumped pod, and the stored form of its text."""

    pod: Pod
    text: SupportsBytes


@dataclass(frozen=True, slots=True)
class FilledStencil:
    """The text of a pod that a stencil read, with the content of its `gaps`; `bytes` reconstructs it."""

    stencil: PodStencil
    gaps: bytes

    def __bytes__(self) -> bytes:
        return self.stencil.filled(self.gaps)


class NamedIn(NamedTuple):
    """Where else a pod of a StatefulSet has its name and its index: the labels that hold them, and the hostname."""

    labels: tuple[tuple[str, str], ...] = ()
    is_hostname: bool = False


NOT_NAMED = NamedIn()


class _Layout(NamedTuple):
    """The positions of the fixed text and of the gaps, for texts of one length."""

    starts: tuple[int, ...]
    gaps: tuple[slice, ...]


class PodStencil:
    """A reader of pods that differ from one pod only in pod-specific values; made by `stencil_of`."""

    __slots__ = (
        "_addresses",
        "_around",
        "_bare",
        "_closings",
        "_form",
        "_layouts",
        "_metadata",
        "_named_in",
        "_own",
        "_own_volumes",
        "_pod",
        "_times",
    )

    def __init__(self, text: bytes, pod: Pod, gaps: Sequence[Gap], named_in: NamedIn = NOT_NAMED) -> None:
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
        # The layouts by text length.
        self._layouts: dict[int, _Layout] = {}
        self._pod = pod
        self._named_in = named_in
        # The first of each type.
        self._own = {what: group for (what, _), group in reversed(groups.items())}
        self._metadata = [(name, self._own[what]) for what, name in _METADATA.items() if what in self._own]
        self._times = [group for (what, _), group in groups.items() if what in TIMES]
        self._addresses = [group for (what, _), group in groups.items() if what == "address"]
        self._bare = [number for number, gap in enumerate(gaps) if gap.is_bare]
        volume = next((gap.value for gap in gaps if gap.what == "volume"), None)
        self._own_volumes = () if volume is None else own_volumes_of(pod.spec, volume)

    def read(self, text: bytes) -> ReadPod | None:
        """Return the pod of the text; None unless it certainly matches the stencil."""
        gaps = self._laid_out(text) or self._looked_up(text)
        found = None if gaps is None else self._form.fullmatch(gaps)
        if gaps is None or found is None or not self._are_right(gaps, found):
            return None
        return ReadPod(self._with(found), FilledStencil(self, gaps))

    def filled(self, gaps: bytes) -> bytes:
        """Return the text with this content in the gaps."""
        parts = zip_longest(self._around, gaps.split(_BETWEEN), fillvalue=b"")
        return b"".join(chain.from_iterable(parts))

    def _laid_out(self, text: bytes) -> bytes | None:
        """Return the content of the gaps if they are positioned as in a text of that length; otherwise None."""
        layout = self._layouts.get(len(text))
        if layout is None or not all(map(text.startswith, self._around, layout.starts)):
            return None
        return _BETWEEN.join(map(text.__getitem__, layout.gaps))

    def _looked_up(self, text: bytes) -> bytes | None:
        """Return the content of the gaps by searching from one to the next; None if the text around them differs."""
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
        """Return whether the content of each gap has its form and fits the others."""
        if not all(map(is_time, {found[group] for group in self._times})):
            return False
        labels, is_hostname = self._named_in
        if labels or is_hostname:
            # A name of the usual form is a label's value if it is not too long, and a hostname if it also has no dot.
            name = found[self._own["name"]]
            if len(name) > MAX_LABEL or (is_hostname and b"." in name):
                return False
        # They also are keys of managed fields, which must be unique.
        if len(self._addresses) > 1 and len({*found.group(*self._addresses)}) < len(self._addresses):
            return False
        if not self._bare:
            return True
        values = gaps.split(_BETWEEN)
        return all(is_text(values[number].decode()) for number in self._bare)

    def _with(self, found: re.Match[bytes]) -> Pod:
        """Return the pod with these values in the gaps."""
        pod, own = self._pod, self._own
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        metadata = replace(metadata, **{name: found[group].decode() for name, group in self._metadata})
        if self._named_in.labels:
            labels = {label: found[own[what]].decode() for label, what in self._named_in.labels}
            metadata = replace(metadata, labels={**metadata.labels, **labels})
        node = _kept(found[own["node"]]) if "node" in own else spec.node_name
        volume = found[own["volume"]].decode() if "volume" in own else ""
        affinity = spec.affinity
        spec = named(spec, node, self._own_volumes, volume)
        if affinity is not None and node != pod.spec.node_name:
            spec = replace(spec, affinity=bound_to(affinity, pod.spec.node_name, node))
        if "start" in own:
            status = replace(status, start_time=_kept(found[own["start"]]))
        return Pod(api_version=pod.api_version, kind=pod.kind, metadata=metadata, spec=spec, status=status)


def stencil_of(
    text: bytes, pod: Pod, gaps: Callable[[], Sequence[Gap]], named_in: NamedIn = NOT_NAMED
) -> PodStencil | None:
    """Return the stencil of a pod without findings; None if its text has no gap for the name."""
    found_gaps = gaps() if len(text) <= _MAX_BYTES else ()
    if not any(gap.what == "name" for gap in found_gaps):
        return None
    stencil = PodStencil(text, pod, found_gaps, named_in)
    found = stencil.read(text)
    return stencil if found is not None and found.pod == pod else None


@lru_cache(maxsize=_CACHE)
def _kept(text: bytes) -> str:
    """Return the interned text, shared by all pods that have it."""
    return text.decode()
