"""What a pod carries of its owner's futile preemptions, so that a scheduler that begins anew goes on with the count.

It stands in an annotation of the pod that preempts: the one object of which it is certain that its scheduler sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from podium.api.pod import Pod
from podium.api.times import MAX_TIME_NS

ANNOTATION = "podium.dev/futile-preemptions"
"""The annotation; JSON of a `Note`."""


@dataclass(frozen=True, slots=True)
class Round:
    """One preemption for a node: when it began, the uids of its victims, and of the pods that were there then.

    These are all on the node itself; and on other nodes those who are in the pod's way, and had not started before.
    """

    node_name: str
    victims: frozenset[str]
    present: frozenset[str]
    began_ns: int


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How many preemptions of the owner were futile in a row, until when none is begun, and the pod's own last one.

    ``judged_ns`` is when the last of those that were judged had begun: pods that failed may carry them still.
    """

    futile: int = 0
    until_ns: int = 0
    judged_ns: int = 0
    began_ns: int = 0
    node: str = ""
    victims: tuple[str, ...] = ()
    present: tuple[str, ...] = ()

    @property
    def round(self) -> Round | None:
        """The preemption that is yet to be judged, None where there is none."""
        return Round(self.node, frozenset(self.victims), frozenset(self.present), self.began_ns) if self.node else None


def written(known: Note, round_: Round | None) -> str:
    """The annotation's text: what is known of the owner, and the pod's own preemption that is yet to be judged."""
    if round_ is not None:
        known = msgspec.structs.replace(
            known,
            node=round_.node_name,
            victims=_sorted(round_.victims),
            present=_sorted(round_.present),
            began_ns=round_.began_ns,
        )
    return msgspec.json.encode(known).decode()


def note_of(pod: Pod) -> Note | None:
    """What a pod carries; None where it carries nothing, or what no scheduler has written."""
    text = pod.metadata.annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        note = msgspec.json.decode(text, type=Note)
    except msgspec.DecodeError:
        return None
    return note if note.futile >= 0 and 0 <= note.until_ns <= MAX_TIME_NS else None


def _sorted(uids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(uids))
