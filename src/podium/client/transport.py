"""A transport that carries out the actions of controllers at an API server over HTTP.

The actions on one object are sent in order, each after the answer to the one before. Requests for different objects run
concurrently. Each action gets one answer: the server's, or that the outcome is unknown.

Only retries that need no decision happen here: a request is repeated if the server asks for a delay, and after a lost
answer the object is read. All other retries are the controller's decision.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from podium.api.disruption_policy import Rate
from podium.api.meta import value_at
from podium.api.times import SECOND
from podium.apirequests.actions import conversation_of, is_repeatable
from podium.apirequests.events import EventRecorder
from podium.apirequests.request import Conversation, Request, Response, problem_of
from podium.client.extenders import HTTPExtender
from podium.client.session import NoAnswerError, Session
from podium.controllers.actions import Action, Bind, CreateObject, DeleteObject, Evict, Record, ReplaceStatus
from podium.controllers.observations import ActionFinished, Answer, Problem
from podium.runtime.runtime import RequestedAction
from podium.store.api_resources import POD
from podium.store.errors import StoreError

_READS = frozenset(("get", "list", "watch"))
_LOST = "no answer came: it may have been carried out, or not"
_NOT_SENT = "it is not sent: another instance may hold the lease"
_MOST_EVENTS = 1_000
_TRIES = 3
_FIRST_PAUSE_S = 0.2
# client-go retries up to ten times if the server asks for a delay.
_MOST_WAITS = 10
_MOST_WAITED_S = 30.0
# Servers that answer so have done nothing; for reads, that does not matter.
_NOTHING_DONE, _MAY_BE_DONE = frozenset((429, 503)), frozenset((500, 502, 504))
_EVENT_WRITERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """The maximum number of concurrent requests, and the request rate per second (0: unlimited)."""

    concurrency: int = 32
    per_second: float = 0.0
    burst: int = 100


@dataclass(slots=True)
class TransportCounts:
    """Counters of requests: sent, repeated, unanswered, and checked for their effect; and of dropped Events."""

    sent: int = 0
    waited: int = 0
    lost: int = 0
    checked: int = 0
    dropped_events: int = 0


@dataclass(slots=True, eq=False)
class HTTPTransport:
    """A transport for a runtime on an event loop.

    ``answer`` receives the result of each action. ``now`` returns the time. ``seconds_to_write`` limits writes: none is
    sent or waited for after that time. ``may_disrupt`` says whether pods may currently be deleted and evicted.
    ``on_fault`` receives unexpected errors. ``binder``, if set, binds the pods that it is responsible for; if an
    ignorable one fails, the API server binds them. ``is_podium_server`` is whether the API server is Podium's own,
    which records eviction hints.
    """

    session: Session
    answer: Callable[[RequestedAction, ActionFinished], None]
    now: Callable[[], int]
    settings: TransportSettings = TransportSettings()
    _: KW_ONLY
    seconds_to_write: Callable[[], float] = lambda: float("inf")
    may_disrupt: Callable[[], bool] = lambda: True
    on_fault: Callable[[BaseException], None] = lambda error: None
    binder: HTTPExtender | None = None
    is_podium_server: bool = True
    counts: TransportCounts = field(default_factory=TransportCounts)
    _room: asyncio.Semaphore = field(init=False)
    _rate: Rate | None = field(init=False)
    # The time at which all tokens of the rate are or will be back.
    _full_ns: int = 0
    # By object, the queued actions after the one in flight.
    _lanes: dict[tuple[str, str], deque[RequestedAction]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _events: deque[tuple[Record, str]] = field(default_factory=deque)
    _recorder: EventRecorder = field(default_factory=EventRecorder)
    _event_writers: int = 0

    def __post_init__(self) -> None:
        self._room = asyncio.Semaphore(self.settings.concurrency)
        per_second, burst = self.settings.per_second, max(1, self.settings.burst)
        self._rate = Rate(burst, int(burst * SECOND / per_second)) if per_second > 0 else None

    def send(self, requested: RequestedAction, now: int) -> None:
        if isinstance(requested.action, Record):
            # Events are written in the background; controllers do not wait for them.
            self._report(requested, ActionFinished(requested.action))
            if len(self._events) >= _MOST_EVENTS:
                self.counts.dropped_events += 1
                return
            self._events.append((requested.action, requested.component.name))
            if self._event_writers < min(_EVENT_WRITERS, len(self._events)):
                self._event_writers += 1
                self._begin(self._write_events())
            return
        about = _about(requested.action)
        lane = self._lanes.get(about)
        if lane is not None:
            lane.append(requested)
            return
        self._lanes[about] = deque((requested,))
        self._begin(self._drive(about))

    async def drain(self, patience_s: float) -> bool:
        """Wait up to ``patience_s`` for all actions in flight; return whether all were answered."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience_s)
        return not self._tasks

    async def close(self) -> None:
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
        """Carry out the queued actions on one object, one after the other."""
        lane = self._lanes[about]
        while lane:
            requested = lane[0]
            try:
                finished = await self._carry_out(requested)
            except Exception as error:
                # The component gets an answer in any case.
                self.on_fault(error)
                finished = ActionFinished(requested.action, Problem(0, "", f"{_LOST}: {error}"))
            self._report(requested, finished)
            lane.popleft()
        del self._lanes[about]

    def _report(self, requested: RequestedAction, finished: ActionFinished) -> None:
        """Deliver an action's answer. If that fails, other actions still continue."""
        try:
            self.answer(requested, finished)
        except Exception as error:
            self.on_fault(error)

    async def _carry_out(self, requested: RequestedAction) -> ActionFinished:
        """Carry out an action; after a lost answer, read the object and retry."""
        action = requested.action
        finished = await self._ask_for(requested)
        for number in range(_TRIES - 1):
            if finished.answer is not Answer.UNKNOWN:
                return finished
            self.counts.lost += 1
            await asyncio.sleep(_FIRST_PAUSE_S * 2**number)
            found = await self._look(action)
            if found:
                return ActionFinished(action)
            if found is None and not is_repeatable(action):
                return finished
            # If the first request was still in flight, the retry is refused; another read shows why.
            again = await self._ask_for(requested)
            is_in_conflict = again.problem is not None and again.problem.code == 409
            if is_in_conflict and await self._look(action):
                return ActionFinished(action)
            finished = again
        return finished

    async def _look(self, action: Action) -> bool | None:
        """Return whether a write was done; None if that cannot be determined."""
        match action:
            case Bind(pod=key) | Evict(pod=key):
                kind = "Pod"
            case DeleteObject(kind=kind, key=key):
                pass
            case _:
                return None
        self.counts.checked += 1
        try:
            response = await self._ask(Request(verb="get", kind=kind, key=key))
        except (NoAnswerError, StoreError):
            return None
        if response.error is not None and response.code != 404:
            return None
        raw = response.object
        is_it = bool(value_at(raw, "metadata", "uid") == action.uid)
        if isinstance(action, Bind):
            return is_it and bool(value_at(raw, "spec", "nodeName") == action.node_name)
        return not is_it or bool(value_at(raw, "metadata", "deletionTimestamp"))

    async def _ask_for(self, requested: RequestedAction) -> ActionFinished:
        """Carry out an action, and return its result in every case."""
        binder, action = self.binder, requested.action
        if binder is not None and isinstance(action, Bind) and binder.binds(action):
            async with self._room:
                left_s = self.seconds_to_write()
                problem = await binder.bind(action, left_s) if left_s > 0 else _not_reached(_NOT_SENT)
            if problem is None or not binder.is_ignorable:
                return ActionFinished(action, problem)
        conversation = conversation_of(
            action, requested.component.name, self.now(), is_podium_server=self.is_podium_server
        )
        return await self._hold(action, conversation)

    async def _hold(self, action: Action, conversation: Conversation, first: Request | None = None) -> ActionFinished:
        """Run the conversation of an action to its end, starting with its ``first`` request if that is known."""
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
            return ActionFinished(action, None, end.value)
        except StoreError as error:
            return ActionFinished(action, problem_of(error))
        except NoAnswerError as error:
            return ActionFinished(action, Problem(0, "", str(error)) if error.was_sent else _not_reached(str(error)))
        finally:
            conversation.close()

    # Requests

    async def _ask(self, request: Request) -> Response:
        """Return the response to a request, after the delays that the server asks for.

        Raises NoAnswerError and StoreError.
        """
        left_s = _MOST_WAITED_S
        for _ in range(_MOST_WAITS):
            response = await self._sent(request)
            wait_s = _wait_asked_s(request, response)
            if wait_s is None or wait_s > min(left_s, self.seconds_to_write()):
                return response
            self.counts.waited += 1
            left_s -= wait_s
            await asyncio.sleep(wait_s)
        return await self._sent(request)

    async def _sent(self, request: Request) -> Response:
        if self._rate is not None:
            now = self.now()
            wait_ns = self._rate.next_ns(self._full_ns, now) - now
            self._full_ns = self._rate.taken(self._full_ns, now)
            if wait_ns:
                await asyncio.sleep(wait_ns / 1e9)
        async with self._room:
            self.counts.sent += 1
            if request.verb in _READS:
                return await self.session.answer(request)
            # Evaluated right before sending, after all waits.
            left_s = self.seconds_to_write()
            if left_s <= 0:
                raise StoreError(503, "ServiceUnavailable", _NOT_SENT)
            disrupts = request.kind == POD.name and (request.verb == "delete" or request.subresource == "eviction")
            if disrupts and not self.may_disrupt():
                raise StoreError(503, "ServiceUnavailable", "it is not sent: no pod is to be disrupted at present")
            return await self.session.answer(request, left_s)

    # Events

    async def _write_events(self) -> None:
        try:
            while self._events:
                action, component = self._events.popleft()
                is_written = False
                try:
                    conversation = self._recorder.record(action, component, self.now())
                    first = next(conversation, None)
                    is_written = first is not None and (await self._hold(action, conversation, first)).problem is None
                except Exception as error:
                    # Continue with the next Events.
                    self.on_fault(error)
                if not is_written:
                    self.counts.dropped_events += 1
        finally:
            self._event_writers -= 1


def _about(action: Action) -> tuple[str, str]:
    """Return the kind and key of the object that an action writes."""
    if isinstance(action, CreateObject | ReplaceStatus):
        metadata = action.raw.get("metadata", {})
        return str(action.raw.get("kind")), f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    claim = getattr(action, "claim", "")
    if claim:
        return "PersistentVolumeClaim or ResourceClaim", claim
    pod = getattr(action, "pod", "")
    return ("Pod", pod) if pod else (getattr(action, "kind", ""), getattr(action, "key", ""))


def _not_reached(message: str) -> Problem:
    """Return the problem of an unreachable server: nothing was done, and a retry is possible."""
    return Problem(503, "ServiceUnavailable", message)


def _wait_asked_s(request: Request, response: Response) -> float | None:
    """Return the delay in seconds that the server asks for before a retry; None if it does not, or refuses."""
    is_asked = response.code in _NOTHING_DONE or (request.verb in _READS and response.code in _MAY_BE_DONE)
    if response.error is None or not is_asked:
        return None
    is_judged = request.subresource == "eviction" and response.code == 429
    seconds = response.error.details.get("retryAfterSeconds")
    return None if is_judged or not seconds else float(seconds)


@dataclass(slots=True, eq=False)
class DryTransport:
    """A transport that answers immediately, and reports to ``on_action`` what would have been sent."""

    answer: Callable[[RequestedAction, ActionFinished], None]
    on_action: Callable[[RequestedAction], None] = lambda asked: None

    def send(self, requested: RequestedAction, now: int) -> None:
        self.on_action(requested)
        self.answer(requested, ActionFinished(requested.action))

    async def drain(self, patience_s: float) -> bool:
        return True

    async def close(self) -> None:
        """Return at once: no action is in flight."""
