"""Carries the actions of machines out at an API server over HTTP.

What is asked of one object is sent in its order, each request after the answer to the one before. Requests about
different objects go side by side. Each action gets one answer: what the server said, or that nobody knows.

Retries here are those that need no decision: a server that asks to wait gets the request again, and after an answer
that got lost the object is looked at. All else is the machine's to try again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from podium.client.rate import RequestRate
from podium.client.second_looks import Finding, finding, look, may_be_sent_again
from podium.client.session import NoAnswerError, Session
from podium.driver.transport import Asked
from podium.machines.actions import Action, Bind, CreateObject, Record, ReplaceStatus
from podium.machines.answers import Answer
from podium.machines.observations import Answered, Problem
from podium.requests.actions import conversation_of
from podium.requests.conversation import Conversation, problem_of
from podium.requests.event_recorder import EventRecorder
from podium.requests.request import Request, Response
from podium.store.api_resources import POD
from podium.store.errors import StoreError

_READS = frozenset(("get", "list", "watch"))
_LOST = "no answer came: it may have been carried out, or not"
_NOT_SENT = "it is not sent: somebody else may be leading"
_MOST_EVENTS = 1_000
_TRIES = 3
_FIRST_PAUSE_S = 0.2
# Client-go waits for a server that asks to ten times.
_MOST_WAITS = 10
_MOST_WAITED_S = 30.0
# Servers that say so have done nothing; of a read it does not matter.
_NOTHING_DONE, _MAY_BE_DONE = frozenset((429, 503)), frozenset((500, 502, 504))
_TELLERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """How many requests are on their way at once, and how many are sent a second (0: as many as come)."""

    concurrency: int = 32
    per_second: float = 0.0
    burst: int = 100


@dataclass(slots=True)
class TransportCounts:
    """What became of requests: sent, sent again, without an answer; events that nobody was told of."""

    sent: int = 0
    waited: int = 0
    lost: int = 0
    looked: int = 0
    dropped_events: int = 0


class Binder(Protocol):
    """Somebody beside the API server who binds pods."""

    @property
    def is_ignorable(self) -> bool:
        """Whether the API server is asked where a binding of theirs failed."""
        ...

    def binds(self, action: Bind) -> bool:
        """Whether a binding is theirs."""
        ...

    async def bind(self, action: Bind, most_s: float) -> Problem | None:
        """Have a pod bound, in so long at most; None, or the problem where it failed: of code 0 where nobody knows."""
        ...


def _always() -> float:
    return float("inf")


class HTTPTransport:
    """A transport for a driver on an event loop.

    ``answer`` gets each action with how it ended. ``now`` is the time. ``seconds_to_write`` says how long writes may
    still take: none is sent after that, and none is waited for longer. ``may_disrupt`` says whether pods may be deleted
    and evicted at present. ``on_fault`` is told what should not happen.
    ``binder``, where it is set, carries out the bindings that are its own. ``knows_ours`` is whether the API server is
    Podium's own, which writes what an eviction leaves behind; of others it is to be set to False.
    """

    def __init__(
        self,
        session: Session,
        answer: Callable[[Asked, Answered], None],
        now: Callable[[], int],
        settings: TransportSettings = TransportSettings(),
        *,
        seconds_to_write: Callable[[], float] = _always,
        may_disrupt: Callable[[], bool] = lambda: True,
        on_fault: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.counts = TransportCounts()
        self._session = session
        self._answer = answer
        self._now = now
        self._seconds_to_write = seconds_to_write
        self._may_disrupt = may_disrupt
        self._on_fault = on_fault
        self.binder: Binder | None = None
        self.knows_ours = True
        self._room = asyncio.Semaphore(settings.concurrency)
        self._rate = RequestRate(settings.per_second, settings.burst)
        # By object, what is to be sent after what is on its way.
        self._lanes: dict[tuple[str, str], deque[Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._events: deque[Asked] = deque()
        self._recorder = EventRecorder()
        self._tellers = 0

    def send(self, asked: Asked, now: int) -> None:
        """See `Transport`."""
        if isinstance(asked.action, Record):
            self._tell(asked)
            return
        about = _about(asked.action)
        lane = self._lanes.get(about)
        if lane is not None:
            lane.append(asked)
            return
        self._lanes[about] = deque((asked,))
        self._begin(self._drive(about))

    @property
    def is_idle(self) -> bool:
        """Whether every action has its answer."""
        return not self._tasks

    async def drain(self, patience_s: float) -> bool:
        """Wait for all that is on its way, for so long; whether all of it has its answer."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        return self.is_idle

    async def close(self) -> None:
        """Wait for nothing any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Actions

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drive(self, about: tuple[str, str]) -> None:
        """Send what is asked of one object, until there is nothing more."""
        lane = self._lanes[about]
        while lane:
            asked = lane[0]
            self._answer(asked, await self._outcome(asked))
            lane.popleft()
        del self._lanes[about]

    async def _outcome(self, asked: Asked) -> Answered:
        try:
            return await self._carry_out(asked)
        except Exception as error:
            # Whatever happens, who asked is answered.
            self._on_fault(error)
            return Answered(asked.action, Problem(0, "", f"{_LOST}: {error}"))

    async def _carry_out(self, asked: Asked) -> Answered:
        """Do what is asked for; after an answer that got lost, look and try again."""
        action = asked.action
        answered = await self._ask_for(asked)
        for number in range(_TRIES - 1):
            if answered.answer is not Answer.UNKNOWN:
                return answered
            self.counts.lost += 1
            await asyncio.sleep(_FIRST_PAUSE_S * 2**number)
            found = await self._look(action)
            if found is Finding.DONE:
                return Answered(action)
            if found is None and not may_be_sent_again(action):
                return answered
            # A request that was on its way all the time is refused the second time; then a look tells why.
            again = await self._ask_for(asked)
            is_in_conflict = again.problem is not None and again.problem.code == 409
            if is_in_conflict and await self._look(action) is Finding.DONE:
                return Answered(action)
            answered = again
        return answered

    async def _look(self, action: Action) -> Finding | None:
        """Whether a write was done; None where that cannot be told."""
        request = look(action)
        if request is None:
            return None
        self.counts.looked += 1
        try:
            response = await self._ask(request)
        except (NoAnswerError, StoreError):
            return None
        if response.error is None:
            return finding(action, response.object)
        return finding(action, None) if response.code == 404 else None

    async def _ask_for(self, asked: Asked) -> Answered:
        """Carry an action out, whatever becomes of it."""
        binder, action = self.binder, asked.action
        if binder is not None and isinstance(action, Bind) and binder.binds(action):
            problem = await self._bind(binder, action)
            if problem is None or not binder.is_ignorable:
                return Answered(action, problem)
        conversation = conversation_of(action, asked.component.name, self._now(), knows_ours=self.knows_ours)
        return await self._hold(action, conversation)

    async def _bind(self, binder: Binder, action: Bind) -> Problem | None:
        async with self._room:
            left_s = self._seconds_to_write()
            return await binder.bind(action, left_s) if left_s > 0 else _not_reached(_NOT_SENT)

    async def _hold(self, action: Action, conversation: Conversation, first: Request | None = None) -> Answered:
        """Lead the conversation that an action is to its end, from its ``first`` request on where that is known."""
        try:
            request = next(conversation) if first is None else first
            while True:
                try:
                    response = await self._ask(request)
                except StoreError as unsent:
                    request = conversation.throw(unsent)
                    continue
                error = response.error
                request = conversation.send(response) if error is None else conversation.throw(error)
        except StopIteration as end:
            return Answered(action, None, end.value)
        except StoreError as error:
            return Answered(action, problem_of(error))
        except NoAnswerError as error:
            return Answered(action, Problem(0, "", str(error)) if error.was_sent else _not_reached(str(error)))
        finally:
            conversation.close()

    # Requests

    async def _ask(self, request: Request) -> Response:
        """The answer to a request; a server that asks to wait is given time. Raises NoAnswerError and StoreError."""
        left_s = _MOST_WAITED_S
        for _ in range(_MOST_WAITS):
            response = await self._sent(request)
            wait_s = _wait_asked_s(request, response)
            if wait_s is None or wait_s > min(left_s, self._seconds_to_write()):
                return response
            self.counts.waited += 1
            left_s -= wait_s
            await asyncio.sleep(wait_s)
        return await self._sent(request)

    async def _sent(self, request: Request) -> Response:
        wait_ns = self._rate.take(self._now())
        if wait_ns:
            await asyncio.sleep(wait_ns / 1e9)
        async with self._room:
            self.counts.sent += 1
            if request.verb in _READS:
                return await self._session.answer(request)
            # Asked right before it is sent, after all that was waited for.
            left_s = self._seconds_to_write()
            if left_s <= 0:
                raise StoreError(503, "ServiceUnavailable", _NOT_SENT)
            if _disrupts(request) and not self._may_disrupt():
                raise StoreError(503, "ServiceUnavailable", "it is not sent: no pod is to be disrupted at present")
            return await self._session.answer(request, left_s)

    # Events

    def _tell(self, asked: Asked) -> None:
        """Write an event when there is time for it; nobody waits for that."""
        self._answer(asked, Answered(asked.action))
        if len(self._events) >= _MOST_EVENTS:
            self.counts.dropped_events += 1
            return
        self._events.append(asked)
        if self._tellers < min(_TELLERS, len(self._events)):
            self._tellers += 1
            self._begin(self._tell_all())

    async def _tell_all(self) -> None:
        try:
            while self._events:
                asked = self._events.popleft()
                action = asked.action
                if isinstance(action, Record):
                    await self._write_event(action, asked.component.name)
        finally:
            self._tellers -= 1

    async def _write_event(self, action: Record, component: str) -> None:
        try:
            conversation = self._recorder.record(action, component, self._now())
            first = next(conversation, None)
            is_told = first is not None and (await self._hold(action, conversation, first)).problem is None
        except Exception as error:
            # The next events are told all the same.
            self._on_fault(error)
            is_told = False
        if not is_told:
            self.counts.dropped_events += 1


def _about(action: Action) -> tuple[str, str]:
    """The object that an action writes to: its kind and key."""
    if isinstance(action, CreateObject | ReplaceStatus):
        metadata = action.raw.get("metadata", {})
        return str(action.raw.get("kind")), f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    claim = getattr(action, "claim", "")
    if claim:
        return "PersistentVolumeClaim or ResourceClaim", claim
    pod = getattr(action, "pod", "")
    return ("Pod", pod) if pod else (getattr(action, "kind", ""), getattr(action, "key", ""))


def _disrupts(request: Request) -> bool:
    """Whether a request ends a pod."""
    return request.kind == POD.name and (request.verb == "delete" or request.subresource == "eviction")


def _not_reached(message: str) -> Problem:
    """The server was not reached: nothing was done, and it may be later."""
    return Problem(503, "ServiceUnavailable", message)


def _wait_asked_s(request: Request, response: Response) -> float | None:
    """How long the server asks to wait before it is asked the same again; None where it does not, or says no."""
    is_asked = response.code in _NOTHING_DONE or (request.verb in _READS and response.code in _MAY_BE_DONE)
    if response.error is None or not is_asked:
        return None
    is_judged = request.subresource == "eviction" and response.code == 429
    seconds = response.error.details.get("retryAfterSeconds")
    return None if is_judged or not seconds else float(seconds)
