"""The wire form of pods that differ only in their own values: that of one pod, and the place of each such value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from podium.api.input.exact_json import without_nulls
from podium.api.input.pod_gaps import MARK, MARKED
from podium.api.input.text_forms import TextForm
from podium.api.meta import Raw

Places: TypeAlias = "dict[Any, int | Places]"
"""By key or index, the number of the value there, or the places within."""


class PodTemplate:
    """The wire form of similar pods, or a part of it, made from the values of one pod in the order of its text.

    Parts without own values are shared by all pods, and must not be changed. The ``numbers`` are those of the values.
    """

    __slots__ = ("_counts", "_part", "_places", "numbers")

    def __init__(self, part: Any, places: Places, counts: frozenset[int]) -> None:
        self._part = part
        self._places = places
        # The values that are integers.
        self._counts = counts
        self.numbers = tuple(_numbers(places))

    def of(self, values: Sequence[str]) -> Any:
        """Return the wire form of the pod with these values."""
        return self._filled(self._part, self._places, values)

    def section(self, name: str, values: Sequence[str]) -> Raw:
        """Return one section of the wire form, such as the status; empty if the pods have none."""
        section: Raw = self._part.get(name, {})
        places = self._places.get(name)
        return self._filled(section, places, values) if isinstance(places, dict) else section

    def apart(self, name: str) -> tuple[PodTemplate, dict[str, PodTemplate]]:
        """Return the template without the values within parts of a section, and by name the templates of these parts.

        The former makes a new section for each pod.
        """
        places = self._places.get(name)
        if not isinstance(places, dict):
            return self, {}
        parts = {key: place for key, place in places.items() if isinstance(place, dict)}
        own = {key: place for key, place in places.items() if key not in parts}
        section = self._part[name]
        return PodTemplate(self._part, {**self._places, name: own}, self._counts), {
            key: PodTemplate(section[key], place, self._counts) for key, place in parts.items()
        }

    def on(self, raw: Raw) -> PodTemplate:
        """Return the template of another wire form, in which these values have the same places."""
        return PodTemplate(raw, self._places, self._counts)

    def _filled(self, part: Any, places: Places, values: Sequence[str]) -> Any:
        filled = part.copy()
        for key, place in places.items():
            if isinstance(place, dict):
                filled[key] = self._filled(part[key], place, values)
            elif place in self._counts:
                filled[key] = int(values[place])
            else:
                filled[key] = values[place]
        return filled


def template_of(around: Sequence[bytes], counts: frozenset[int], form: TextForm) -> PodTemplate | None:
    """Return the template of the pods with this text around their values, of which ``counts`` are numbers.

    None if a value is not one in the wire form, such as part of a key.
    """
    number = len(around) - 1
    marks = (f"{MARK}{place}" for place in range(number))
    written = ((f'"{mark}"' if place in counts else mark).encode() for place, mark in enumerate(marks))
    raw = without_nulls(form.decode(b"".join(chain.from_iterable(zip_longest(around, written, fillvalue=b"")))))
    found = PodTemplate(raw, _places_in(raw), counts)
    return found if len(found.numbers) == number else None


def _places_in(part: Any) -> Places:
    found: Places = {}
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(value, str):
            if (mark := MARKED.fullmatch(value)) is not None:
                found[key] = int(mark[1])
        elif isinstance(value, dict | list) and (places := _places_in(value)):
            found[key] = places
    return found


def _numbers(places: Places) -> Iterator[int]:
    for place in places.values():
        if isinstance(place, int):
            yield place
        else:
            yield from _numbers(place)
