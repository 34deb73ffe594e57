"""Leader election: the holder of a Lease leads for as long as it renews the lease.

Timestamps of other instances are not trusted: a lease has expired if it has not changed for its duration by the local
clock. The holder counts from the time when it sent the renewal, and stops writing well before others may take over.

This is a state machine without I/O, like `client/reflector_state.py`.

Source: k8s.io/client-go/tools/leaderelection (leaderelection.go, resourcelock/leaselock.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from podium.api.meta import Raw, object_at
from podium.api.times import SECOND, format_micro_time
from podium.apirequests.request import Request, Response
from podium.client.session import NoAnswerError, Send, Session, Wait

_KIND = "Lease"
_JITTER = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """The Lease, the identity of the candidate, and the durations; kube-scheduler's defaults (componentconfig)."""

    identity: str
    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    duration_ns: int = 15 * SECOND
    renew_deadline_ns: int = 10 * SECOND
    retry_period_ns: int = 2 * SECOND

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def problem(self) -> str:
        """Return the problem of the durations (leaderelection.NewLeaderElector); "" if they are valid."""
        if self.duration_ns <= self.renew_deadline_ns:
            return "the lease's duration must be longer than the deadline to renew it"
        if self.renew_deadline_ns <= _JITTER * self.retry_period_ns:
            return "the deadline to renew the lease must be longer than 1.2 times the period between tries"
        if self.retry_period_ns <= 0 or self.duration_ns < SECOND:
            return "the lease must last a second or more, and the period between tries be positive"
        return ""


class LeaderElection:
    """A candidate for the leadership.

    ``leads`` says whether it leads; ``version`` is the version of the lease when that began. ``is_lost``: it has led,
    and no longer does. ``holder`` is the known holder of the lease. ``problem`` is the current problem, "" for none.
    """

    def __init__(self, settings: LeaseSettings, seed: int = 0) -> None:
        self.settings = settings
        self.version = 0
        self.holder = ""
        self.is_lost = False
        self.problem = ""
        self._random = Random(f"{settings.identity} {seed}")  # noqa: S311 - a wait is no secret
        # The lease as last seen, and the local time since when it is unchanged.
        self._seen: Raw | None = None
        self._spec: Raw = {}
        self._seen_ns = 0
        # Whether to read the lease before the next write.
        self._must_read = True
        self._next_ns = 0
        self._renewed_ns: int | None = None
        self._sent: tuple[str, Raw, int] | None = None

    @property
    def leads(self) -> bool:
        """Whether the lease is held, as far as is known."""
        return self._renewed_ns is not None and not self.is_lost

    def writes_until_ns(self) -> int:
        """Return the time until which the leader may write; 0 if this candidate does not lead."""
        if self._renewed_ns is None or self.is_lost:
            return 0
        return self._renewed_ns + self.settings.renew_deadline_ns

    def ask(self, now: int) -> Send | Wait:
        """Return the next step; check `is_lost` first."""
        if self.leads and now >= self.writes_until_ns():
            self._lose("it could not be renewed in time")
        if now < self._next_ns:
            return Wait(min(self._next_ns, self.writes_until_ns() or self._next_ns))
        if self._must_read:
            return self._send("get", {}, now)
        if self._seen is None:
            return self._send("create", self._record(now), now)
        holder, seconds = self._spec.get("holderIdentity") or "", self._spec.get("leaseDurationSeconds")
        length_ns = seconds * SECOND if isinstance(seconds, int) else self.settings.duration_ns
        if holder not in ("", self.settings.identity) and now < self._seen_ns + length_ns:
            # Another candidate holds the lease, which has not expired.
            self._must_read = True
            return self._wait(now)
        return self._send("update", self._record(now), now)

    def on_response(self, response: Response | None, now: int) -> None:
        """Process the response to the last request; None if no answer arrived."""
        if self._sent is None:
            raise ValueError("nothing was asked for")
        verb, record, sent_ns = self._sent
        self._sent = None
        error = None if response is None else response.error
        self.problem = "no answer came" if response is None else "" if error is None else str(error)
        if response is None or (error is not None and not (verb == "get" and error.code == 404)):
            # The write may have succeeded; reading shows whether another candidate was faster.
            self._must_read = True
            self._wait(now)
        elif verb == "get":
            self._read(None if error is not None else response.object, now)
        else:
            # The lease is held since the request was sent.
            raw = response.object or {}
            version = raw.get("metadata", {}).get("resourceVersion", "")
            self._seen, self._spec, self._seen_ns = raw, object_at(raw, "spec") or record, now
            self.holder = self.settings.identity
            if self._renewed_ns is None:
                self.version = int(version) if version.isdigit() else 0
            self._renewed_ns = sent_ns
            self._next_ns = now + self.settings.retry_period_ns

    @property
    def may_hold(self) -> bool:
        """Whether the lease is held, or was by a write without an answer so far."""
        return self.leads or (self._sent is not None and self._sent[0] != "get" and not self.is_lost)

    def release(self, now: int, read: Raw | None = None) -> Request | None:
        """Return the request that releases the lease if it is held, and stop leading.

        A write in flight may have been processed first: then pass the lease as ``read`` afterwards; it is released if
        this candidate holds it.
        """
        held_ns = self._renewed_ns
        if held_ns is None and self._sent is not None:
            held_ns = self._sent[2]
        if held_ns is None or (read is None and not self.leads):
            return None
        lease, spec = (self._seen, self._spec) if read is None else (read, object_at(read, "spec"))
        is_ours = read is None or spec.get("holderIdentity") == self.settings.identity
        self.is_lost = True
        if lease is None or not is_ours or now >= held_ns + self.settings.renew_deadline_ns:
            return None
        ended = dict.fromkeys(("renewTime", "acquireTime"), format_micro_time(now))
        given_back = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1, **ended}
        return Request(verb="update", kind=_KIND, key=self.settings.key, body={**lease, "spec": given_back})

    def reading(self) -> Request:
        return Request(verb="get", kind=_KIND, key=self.settings.key)

    def _send(self, verb: Literal["get", "create", "update"], record: Raw, now: int) -> Send:
        self._sent = verb, record, now
        settings = self.settings
        if verb == "get":
            return Send(self.reading())
        base = self._seen or {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": _KIND,
            "metadata": {"namespace": settings.namespace, "name": settings.name},
        }
        key = "" if verb == "create" else settings.key
        namespace = settings.namespace if verb == "create" else ""
        return Send(Request(verb=verb, kind=_KIND, key=key, namespace=namespace, body={**base, "spec": record}))

    def _record(self, now: int) -> Raw:
        held = self._spec.get("holderIdentity", "") == self.settings.identity
        transitions = self._spec.get("leaseTransitions") or 0
        return {
            **self._spec,
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.settings.duration_ns // SECOND,
            "acquireTime": self._spec.get("acquireTime") if held and self.leads else format_micro_time(now),
            "renewTime": format_micro_time(now),
            "leaseTransitions": transitions if held or self._seen is None else transitions + 1,
        }

    def _read(self, raw: Raw | None, now: int) -> None:
        spec = object_at(raw, "spec")
        if raw is None or self._seen is None or spec != self._spec:
            self._seen_ns = now
        self._seen, self._spec, self._must_read = raw, spec, False
        self.holder = str(spec.get("holderIdentity") or "")
        if self.leads and self.holder != self.settings.identity:
            self._lose(f"{self.holder or 'another instance'} holds it")

    def _lose(self, problem: str) -> None:
        self.is_lost = True
        self.problem = f"the lease is lost: {problem}"

    def _wait(self, now: int) -> Wait:
        period_ns = self.settings.retry_period_ns
        self._next_ns = now + period_ns + int(self._random.random() * (_JITTER - 1) * period_ns)
        return Wait(self._next_ns)


@dataclass(slots=True, eq=False)
class Elector:
    """An elector that performs the steps of `LeaderElection`.

    Use a dedicated ``session`` so that renewals do not queue.
    """

    machine: LeaderElection
    session: Session
    now: Callable[[], int]

    def seconds_to_write(self) -> float:
        """Return how many seconds remain for writes as the leader."""
        return max(0.0, (self.machine.writes_until_ns() - self.now()) / SECOND)

    async def acquire(self, on_holder: Callable[[str], None] = lambda holder: None) -> int:
        """Return the version of the lease once it is held; ``on_holder`` receives the name of another holder."""
        reported = ""
        while not self.machine.leads:
            await self._step()
            if self.machine.holder != reported:
                reported = self.machine.holder
                on_holder(reported)
        return self.machine.version

    async def keep(self) -> str:
        """Renew the lease; return the reason when it is lost."""
        while self.machine.leads:
            await self._step()
        return self.machine.problem

    async def release(self) -> None:
        """Release the lease, so that another instance need not wait for its expiry."""
        if not self.machine.may_hold:
            return
        request = self.machine.release(self.now())
        response = None if request is None else await self._answer(request)
        if response is None or response.code == 409:
            found = await self._answer(self.machine.reading())
            again = self.machine.release(self.now(), found.object) if found is not None and found.object else None
            if again is not None:
                await self._answer(again)

    async def _step(self) -> None:
        ask = self.machine.ask(self.now())
        if self.machine.is_lost:
            return
        if isinstance(ask, Wait):
            await asyncio.sleep(max(0.0, (ask.until_ns - self.now()) / SECOND))
        else:
            self.machine.on_response(await self._answer(ask.request), self.now())

    async def _answer(self, request: Request) -> Response | None:
        try:
            return await self.session.answer(request, self.machine.settings.renew_deadline_ns / 2 / SECOND)
        except NoAnswerError:
            return None
