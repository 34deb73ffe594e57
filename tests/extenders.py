"""An extender with scripted answers, without a connection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podium.cluster.pods import PodRecord
from podium.framework.extenders import ExtenderError, FilterAnswer, VictimIds, Victims


@dataclass
class FakeExtender:
    """Refuses, rates and agrees to what it is given; ``asked`` are its verbs, each with the nodes.

    ``fails`` are the verbs that it does not answer; ``only`` is the prefix of the pods that interest it.
    """

    name: str = "fake"
    refuses: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    drops: frozenset[str] = frozenset()
    adds: tuple[str, ...] = ()
    scores: Mapping[str, int] | None = None
    agrees: Mapping[str, VictimIds] | None = None
    weight: int = 1
    is_ignorable: bool = False
    fails: frozenset[str] = frozenset()
    only: str = ""
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.filters = True
        self.prioritizes, self.preempts = self.scores is not None, self.agrees is not None

    def is_interested(self, pod: PodRecord) -> bool:
        return pod.name.startswith(self.only)

    def filter(self, pod: PodRecord, names: Sequence[str]) -> FilterAnswer:
        self._ask("filter", names)
        out = {*self.refuses, *self.unresolvable, *self.drops}
        return FilterAnswer([*(name for name in names if name not in out), *self.adds], self.refuses, self.unresolvable)

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Mapping[str, int]:
        self._ask("prioritize", names)
        return self.scores or {}

    def preempt(self, pod: PodRecord, victims: Mapping[str, Victims]) -> Mapping[str, VictimIds]:
        self._ask("preempt", list(victims))
        return {name: ids for name, ids in (self.agrees or {}).items() if name in victims or self.adds}

    def _ask(self, verb: str, names: Sequence[str]) -> None:
        self.asked.append((verb, tuple(sorted(names))))
        if verb in self.fails:
            raise ExtenderError(f"failed {verb}")
