"""Moves under way: their progress and the pods that returned, against a reference that looks at all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from podium.api.input.codec import decode
from podium.api.meta import Kubernetes
from podium.api.times import format_time, parse_time
from podium.app.bench.measurement import operations
from podium.cluster.pods import PodRecord
from podium.controllers.rescheduling.moves import HOUR_NS, Move, Moves
from podium.controllers.rescheduling.rescheduler_view import ReschedulerView
from podium.framework.rescheduling.settings import ReschedulerSettings
from tests.fuzzing import usual
from tests.proof.test_operations import FEW, MANY, SLACK
from tests.store.objects import SECOND, Raw, node, running

START = parse_time("2026-01-01T00:00:00Z")
MINUTE = 60 * SECOND
PLAIN = ReschedulerSettings(policies=())
OWNERS, NODES = ("a", "b"), ("n0", "n1", "n2")


class Step(Struct, frozen=True):
    """Something that happens to the pod with an index among those that exist, or to a node."""

    what: Literal["create", "place", "ready", "end", "gone", "move", "doubt", "drop", "entry", "adopt", "look"]
    pod: int = 0
    node: int = 0
    owner: int = 0
    seconds: int = 0


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("create", "create", "place", "ready", "end", "gone", "move", "move", "look", "look"))
        | st.sampled_from(("doubt", "drop", "entry", "adopt")),
        pod=st.integers(0, 5),
        node=st.integers(0, len(NODES) - 1),
        owner=st.integers(0, len(OWNERS) - 1),
        seconds=st.sampled_from((0, 0, 1, 30, 70, 700, 4_000)),
    ),
    max_size=40,
)


class Rig:
    """Moves, what a rescheduler sees of their pods, and the time."""

    def __init__(self, *, owners: Sequence[str] = OWNERS, nodes: Sequence[str] = NODES) -> None:
        self.view = ReschedulerView()
        self.moves = Moves(self.view)
        self.raws: dict[str, Raw] = {}
        self.now = START
        self.created = 0
        self.begun: list[Move] = []
        self.owners = owners
        self.nodes = nodes
        for raw in map(node, nodes):
            self.view.observe(read(raw), raw)

    def show(self, raw: Raw) -> None:
        self.raws[raw["metadata"]["uid"]] = raw
        self.view.observe(read(raw), raw)

    def create(self, owner: str, on: str = "", *, ready: bool = False) -> str:
        """Create a pod of an owner now; return its uid."""
        uid = f"u{self.created}"
        self.created += 1
        metadata = {"uid": uid, "creationTimestamp": format_time(self.now), "ownerReferences": [owned_by(owner)]}
        self.show(running(f"{owner}-{uid}", node=on, ready=ready, metadata=metadata))
        return uid

    def pod(self, uid: str) -> PodRecord:
        found = self.view.pod(uid)
        assert found is not None
        return found

    def change(self, uid: str, **fields: Any) -> None:
        """Change fields of a pod's parts."""
        raw = self.raws[uid]
        self.show({**raw, **{part: {**raw[part], **changed} for part, changed in fields.items()}})

    def place(self, uid: str, on: str) -> None:
        if not self.raws[uid]["spec"].get("nodeName"):
            self.change(uid, spec={"nodeName": on}, status={"startTime": format_time(self.now)})

    def ready(self, uid: str) -> None:
        self.change(uid, status={"conditions": [{"type": "Ready", "status": "True"}]})

    def end(self, uid: str) -> None:
        self.change(uid, metadata={"deletionTimestamp": format_time(self.now)})

    def gone(self, uid: str) -> None:
        self.view.observe(read(self.raws.pop(uid)), None)

    def evict(self, uid: str, to: str) -> Move:
        """Begin a move, if the pod is on a node."""
        self.begun.append(self.moves.begin(self.pod(uid), to, self.now))
        return self.begun[-1]

    def list_entry(self, owner: str, on: str) -> None:
        """Add an entry of an unknown move to a node's avoid list, as before a restart."""
        entry = {
            "podSignature": {"podController": owned_by(owner)},
            "evictionTime": format_time(self.now),
            "reason": "rescheduler",
            "message": f"evicted default/{owner}-x",
        }
        self.view.avoid_lists[on] = json.dumps({"preferAvoidPods": [entry]})
        self.moves.read_avoid_list(on)


def read(raw: Raw) -> Kubernetes:
    found = decode(raw)
    assert found is not None
    return found


def owned_by(owner: str) -> Raw:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}


class PlainMoves:
    """The reference implementation: it looks at all moves each time, and at all pods."""

    def __init__(self, view: ReschedulerView) -> None:
        self.view = view
        self.moves: list[Move] = []
        self.returned: dict[tuple[str, str], set[str]] = {}

    def pods_of(self, owner_uid: str) -> list[PodRecord]:
        pods = [pod for pod in self.view.pods() if pod.owner_uid == owner_uid]
        return sorted(pods, key=lambda pod: (pod.created_ns, pod.key))

    def update(self, now: int, timeout_ns: int) -> None:
        for move in list(self.moves):
            pods = self.pods_of(move.owner_uid)
            for pod in pods:
                if pod.node_name == move.source and move.may_have_made(pod):
                    self.returned.setdefault((move.owner_uid, move.source), set()).add(pod.uid)
            evicted = self.view.pod(move.pod_uid)
            move.is_doubtful &= evicted is not None and not evicted.terminating
            if move.is_doubtful and now >= move.evicted_ns + MINUTE:
                self.moves.remove(move)
            if not move.pod_uid and pods:
                move.namespace, move.has_budget = pods[0].namespace, self.view.budgets.counts(pods[0].pod_class)
        taken = {move.made_uid for move in self.moves}
        for move in self.moves:
            if not move.is_over:
                self.follow(move, taken)
                move.is_over |= now >= move.evicted_ns + timeout_ns
        self.moves = [move for move in self.moves if not move.is_over or now < move.evicted_ns + HOUR_NS]

    def follow(self, move: Move, taken: set[str]) -> None:
        pods = self.pods_of(move.owner_uid)
        free = (pod for pod in pods if pod.uid not in taken and not pod.terminating and move.may_have_made(pod))
        move.replacement = next(free, None)
        if move.replacement is None:
            return
        taken.add(move.replacement.uid)
        has_left = self.view.pod(move.pod_uid) is None
        if not move.pod_uid:
            has_left = not any(pod.terminating and pod.node_name == move.source for pod in pods)
        move.is_over = move.replacement.ready and has_left
        move.made_uid = move.replacement.uid if move.is_over else ""

    def past(self) -> list[tuple[object, ...]]:
        """Return what a plan counts for each move."""
        found: list[tuple[object, ...]] = []
        for move in self.moves:
            place = None if move.replacement is None else move.replacement.node_name
            waits = not move.is_over and bool(move.target) and not place
            waiting = (move.replacement or move.pod) if waits else None
            uid = "" if waiting is None else waiting.uid
            found.append((move.owner_uid, move.source, move.evicted_ns, not move.is_over, move.has_budget, uid))
        return found


def past(moves: Moves) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for one in moves.past():
        uid = "" if one.waiting is None else one.waiting.uid
        found.append((one.owner_uid, one.source, one.evicted_ns, one.is_in_flight, one.has_budget, uid))
    return found


def take(rig: Rig, plain: PlainMoves, step: Step, settings: ReschedulerSettings) -> None:
    """Let a step happen to both."""
    rig.now += step.seconds * SECOND
    owner, on = rig.owners[step.owner], rig.nodes[step.node]
    uids = sorted(rig.raws)
    uid = uids[step.pod % len(uids)] if uids else ""
    match step.what:
        case "create":
            rig.create(owner, on if step.pod % 2 else "", ready=bool(step.pod % 2))
        case "entry" if (owner, on) not in {(move.owner_uid[4:], move.source) for move in plain.moves}:
            rig.list_entry(owner, on)
            evicted_ns = rig.now // SECOND * SECOND + SECOND - 1
            plain.moves.append(Move("default", f"uid-{owner}", on, evicted_ns, entry_time=format_time(rig.now)))
            plain.moves.sort(key=lambda move: move.evicted_ns)
        case "place" | "ready" | "end" | "gone" if uid:
            getattr(rig, step.what)(*([uid, on] if step.what == "place" else [uid]))
        case "adopt" if uid:
            rig.change(uid, metadata={"ownerReferences": [owned_by(owner)]})
        case "move" if uid and rig.pod(uid).node_name and not rig.moves.is_leaving(rig.pod(uid)):
            plain.moves.append(replace(rig.evict(uid, on)))
            plain.moves.sort(key=lambda move: move.evicted_ns)
        case "doubt" | "drop" if uid and (of := [move for move in plain.moves if move.pod_uid == uid]):
            begun = [move for move in rig.begun if move.pod_uid == uid][-1]
            if step.what == "drop":
                rig.moves.drop(begun)
                plain.moves = [move for move in plain.moves if move.pod_uid != uid]
            else:
                rig.moves.on_no_answer(begun)
                for move in of:
                    move.is_doubtful = True
        case _:
            rig.moves.update(rig.now, settings)
            plain.update(rig.now, settings.move_timeout_ns)


@settings(max_examples=usual(300), deadline=None)
@given(STEPS, st.sampled_from((50 * SECOND, 10 * MINUTE, 2 * HOUR_NS)))
def test_moves_progress_as_if_all_of_them_were_looked_at_each_time(steps: list[Step], timeout_ns: int) -> None:
    rig = Rig()
    plain = PlainMoves(rig.view)
    chosen = replace(PLAIN, move_timeout_ns=timeout_ns)

    for step in [*steps, Step("look")]:
        take(rig, plain, step, chosen)
        if step.what == "look":
            assert past(rig.moves) == plain.past()
            leaving = {move.pod_uid for move in plain.moves if not move.is_over}
            assert {uid for uid in rig.raws if rig.moves.is_leaving(rig.pod(uid))} == leaving & rig.raws.keys()
            assert set(rig.moves.returns.cooling(rig.now)) <= plain.returned.keys()


def test_a_replacement_completes_one_move_only() -> None:
    rig = Rig()
    leaving = [rig.create("a", "n0", ready=True) for _ in range(2)]
    rig.now += MINUTE
    for uid in leaving:
        rig.evict(uid, "n1")
        rig.gone(uid)
    first, second = rig.create("a", "n1"), rig.create("a", "n1")
    rig.ready(first)
    for _ in range(2):
        rig.change(second, status={"phase": "Running"})
        rig.moves.update(rig.now, PLAIN)
        assert len(rig.moves.under_way()) == 1
    rig.ready(second)
    rig.moves.update(rig.now, PLAIN)

    assert rig.moves.under_way() == []


def moved(number: int, *, of_one_owner: bool) -> tuple[Rig, list[str]]:
    """Return as many moves under way of one owner each, or of one owner, and their replacements, without nodes."""
    names = ["a"] * number if of_one_owner else [f"o{place}" for place in range(number)]
    rig = Rig(owners=names)
    before = [rig.create(owner, "n0", ready=True) for owner in names]
    rig.now += MINUTE
    for uid in before:
        rig.evict(uid, "n1")
        rig.end(uid)
    created = [rig.create(owner) for owner in names]
    rig.moves.update(rig.now, PLAIN)
    return rig, created


def after_one_pod(number: int) -> Counter[str]:
    """Return the operations of a look after the replacement of one of many moves got its node, and of what follows."""
    rig, created = moved(number, of_one_owner=False)

    def happen() -> None:
        rig.place(created[0], "n1")
        rig.moves.update(rig.now, PLAIN)
        rig.moves.past()
        rig.evict(rig.create("o1", "n0", ready=True), "n1")
        rig.moves.update(rig.now, PLAIN)

    return operations(happen)


def test_a_look_costs_the_moves_of_owners_whose_pods_changed() -> None:
    few, many = after_one_pod(FEW), after_one_pod(MANY)

    assert few.total() > SLACK
    assert many.total() <= few.total() + SLACK, (many - few).most_common(12)
