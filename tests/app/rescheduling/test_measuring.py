"""What pods and nodes use is asked for again and again, and what goes wrong is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from podium.api.use import Use
from podium.app.rescheduling.measuring import Measuring
from podium.client.session import NoAnswerError
from podium.machines.rescheduling.measured_use import MeasuredUse
from podium.requests.request import Response
from podium.store.errors import StoreError

NOTHING = MeasuredUse()


def answer(*items: Any) -> Response:
    return Response(object={"kind": "List", "items": list(items)})


def of_pod(name: str, *cpu: str) -> dict[str, Any]:
    containers = [{"name": "main", "usage": {"cpu": amount, "memory": "1Ki"}} for amount in cpu]
    return {"metadata": {"namespace": "default", "name": name}, "containers": containers}


def of_node(name: str, cpu: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "usage": {"cpu": cpu, "memory": "1Mi"}}


class Server:
    """Answers in turn; a round is a question for pods and one for nodes."""

    def __init__(self, *rounds: Callable[[str], Response]) -> None:
        self.left = list(rounds)
        self.told: list[MeasuredUse] = []
        self.problems: list[str] = []
        self.done = asyncio.Event()

    async def read(self, path: str) -> Response:
        assert path.startswith("/apis/metrics.k8s.io/v1beta1/")
        asked = path.rpartition("/")[2]
        if not self.left:
            self.done.set()
            await asyncio.Event().wait()
        try:
            return self.left[0](asked)
        finally:
            if asked == "nodes" or self.left[0] in (refused, silent):
                self.left.pop(0)


def refused(asked: str) -> Response:
    return Response(code=403, error=StoreError(403, "Forbidden", "pods.metrics.k8s.io is forbidden"))


def silent(asked: str) -> Response:
    raise NoAnswerError("nobody answers", was_sent=True)


def measured(asked: str) -> Response:
    return answer(of_node("n1", "2")) if asked == "nodes" else answer(of_pod("a", "250m", "50m"))


def strange(asked: str) -> Response:
    odd: list[Any] = [3, None, {}, {"metadata": 5}, of_pod("b", "much"), {"metadata": {"name": ""}, "usage": {}}]
    return answer(*odd) if asked == "pods" else Response(object={"items": "none"})


def play(*rounds: Callable[[str], Response]) -> Server:
    async def story() -> Server:
        server = Server(*rounds)
        task = asyncio.ensure_future(Measuring(server, 0.0, server.told.append, server.problems.append).run())
        async with asyncio.timeout(30):
            await server.done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return server

    return asyncio.run(story())


def test_pods_are_told_by_key_with_all_their_containers_and_nodes_by_name() -> None:
    (told,) = play(measured).told
    assert told == MeasuredUse({"default/a": Use(300, 2_048)}, {"n1": Use(2_000, 1 << 20)})


def test_where_nobody_answers_any_more_what_was_measured_before_counts_no_longer() -> None:
    server = play(measured, silent, silent, measured)
    assert [use == NOTHING for use in server.told] == [False, True, True, False]
    assert server.problems == ["nobody answers", ""]


def test_what_is_read_of_somebody_who_does_not_say_what_was_asked_is_nothing() -> None:
    assert play(strange).told == [NOTHING]
