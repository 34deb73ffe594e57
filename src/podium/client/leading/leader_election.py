"""Who of several that run the same leads: the holder of a Lease, as long as it renews that.

Nobody trusts the times that others write: a lease is over when it has not changed for its length by one's own clock.
The holder counts from when it sent what renewed the lease, and writes nothing more well before others may take over.

This is a machine without connections, as `client/reflecting/reflecting.py`.

Source: k8s.io/client-go/tools/leaderelection (leaderelection.go, resourcelock/leaselock.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.api.meta import Raw
from podium.api.times import format_time
from podium.client.asking import Ask, Wait
from podium.requests.request import Request, Response

_SECOND = 10**9
_KIND = "Lease"
_JITTER = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """The Lease, who wants it, and how long things take; kube-scheduler's defaults (componentconfig)."""

    identity: str
    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    duration_ns: int = 15 * _SECOND
    renew_deadline_ns: int = 10 * _SECOND
    retry_period_ns: int = 2 * _SECOND

    @property
    def key(self) -> str:
        """The Lease's key."""
        return f"{self.namespace}/{self.name}"

    def problem(self) -> str:
        """What is wrong with the durations (leaderelection.NewLeaderElector); "" for nothing."""
        if self.duration_ns <= self.renew_deadline_ns:
            return "the lease's duration must be longer than the deadline to renew it"
        if self.renew_deadline_ns <= _JITTER * self.retry_period_ns:
            return "the deadline to renew the lease must be longer than 1.2 times the period between tries"
        if self.retry_period_ns <= 0 or self.duration_ns < _SECOND:
            return "the lease must last a second or more, and the period between tries be longer than nothing"
        return ""


class LeaderElection:
    """One that wants to lead.

    ``leads`` says whether it does, ``version`` the version of the lease with which that began. ``is_lost``: it has led,
    and does so no longer. ``holder`` is who is known to hold the lease. ``problem`` says what is wrong, "" for nothing.
    """

    def __init__(self, settings: LeaseSettings, seed: int = 0) -> None:
        self.settings = settings
        self.version = 0
        self.holder = ""
        self.is_lost = False
        self.problem = ""
        self._random = Random(f"{settings.identity} {seed}")  # noqa: S311 - a wait is no secret
        # The lease as it was last seen, and since when it has been so by our clock.
        self._seen: Raw | None = None
        self._spec: Raw = {}
        self._seen_ns = 0
        # Whether the lease is to be read before anything is written.
        self._must_read = True
        self._next_ns = 0
        self._renewed_ns: int | None = None
        self._sent: tuple[str, Raw, int] | None = None

    @property
    def leads(self) -> bool:
        """Whether the lease is held, as far as is known."""
        return self._renewed_ns is not None and not self.is_lost

    def writes_until_ns(self) -> int:
        """Until when something may be written in the leader's name; 0 for who does not lead."""
        if self._renewed_ns is None or self.is_lost:
            return 0
        return self._renewed_ns + self.settings.renew_deadline_ns

    def ask(self, now: int) -> Ask | Wait:
        """What to do next; look at `is_lost` first."""
        if self.leads and now >= self.writes_until_ns():
            self._lose("it could not be renewed in time")
        if now < self._next_ns:
            return Wait(min(self._next_ns, self.writes_until_ns() or self._next_ns))
        if self._must_read:
            return self._send("get", {}, now)
        if self._seen is None:
            return self._send("create", self._record(now), now)
        if not self._may_take(now):
            self._must_read = True
            return self._wait(now)
        return self._send("update", self._record(now), now)

    def answered(self, response: Response | None, now: int) -> None:
        """What became of the request that was asked for; None where no answer came."""
        if self._sent is None:
            raise ValueError("nothing was asked for")
        verb, record, sent_ns = self._sent
        self._sent = None
        error = None if response is None else response.error
        self.problem = "no answer came" if response is None else "" if error is None else str(error)
        if response is None or (error is not None and not (verb == "get" and error.code == 404)):
            # It may have been written; and who was faster is seen by reading.
            self._must_read = True
            self._wait(now)
        elif verb == "get":
            self._read(None if error is not None else response.object, now)
        else:
            self._written(response.object or {}, record, sent_ns, now)

    def release(self, now: int, read: Raw | None = None) -> Request | None:
        """The request that gives the lease back, where it is held; from then on nothing is led.

        A renewal on its way may have come first: then it is given back as it was ``read`` since, if it is ours.
        """
        if self._renewed_ns is None or (self.is_lost and read is None):
            return None
        lease, spec = (self._seen, self._spec) if read is None else (read, _spec(read))
        is_ours = read is None or spec.get("holderIdentity") == self.settings.identity
        self.is_lost = True
        if lease is None or not is_ours or now >= self._renewed_ns + self.settings.renew_deadline_ns:
            return None
        given_back = {
            **spec,
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": _micro(now),
            "acquireTime": _micro(now),
        }
        return Request(verb="update", kind=_KIND, key=self.settings.key, body={**lease, "spec": given_back})

    def reading(self) -> Request:
        """The request that reads the lease."""
        return Request(verb="get", kind=_KIND, key=self.settings.key)

    def _send(self, verb: str, record: Raw, now: int) -> Ask:
        self._sent = verb, record, now
        settings = self.settings
        if verb == "get":
            return Ask(self.reading())
        base = self._seen or {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": _KIND,
            "metadata": {"namespace": settings.namespace, "name": settings.name},
        }
        body = {**base, "spec": record}
        if verb == "create":
            return Ask(Request(verb="create", kind=_KIND, namespace=settings.namespace, body=body))
        return Ask(Request(verb="update", kind=_KIND, key=settings.key, body=body))

    def _record(self, now: int) -> Raw:
        held = self._spec.get("holderIdentity", "") == self.settings.identity
        transitions = self._spec.get("leaseTransitions") or 0
        return {
            **self._spec,
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.settings.duration_ns // _SECOND,
            "acquireTime": self._spec.get("acquireTime") if held and self.leads else _micro(now),
            "renewTime": _micro(now),
            "leaseTransitions": transitions if held or self._seen is None else transitions + 1,
        }

    def _may_take(self, now: int) -> bool:
        """Whether the lease is nobody's, ours, or over."""
        holder = self._spec.get("holderIdentity") or ""
        if holder in ("", self.settings.identity):
            return True
        seconds = self._spec.get("leaseDurationSeconds")
        length_ns = seconds * _SECOND if isinstance(seconds, int) else self.settings.duration_ns
        return now >= self._seen_ns + length_ns

    def _read(self, raw: Raw | None, now: int) -> None:
        spec = _spec(raw)
        if raw is None or self._seen is None or spec != self._spec:
            self._seen_ns = now
        self._seen, self._spec, self._must_read = raw, spec, False
        self.holder = str(spec.get("holderIdentity") or "")
        if self.leads and self.holder != self.settings.identity:
            self._lose(f"{self.holder or 'somebody'} has it")

    def _written(self, raw: Raw, record: Raw, sent_ns: int, now: int) -> None:
        """We hold the lease from when we asked for it."""
        version = raw.get("metadata", {}).get("resourceVersion", "")
        self._seen, self._spec, self._seen_ns = raw, _spec(raw) or record, now
        self.holder = self.settings.identity
        if self._renewed_ns is None:
            self.version = int(version) if version.isdigit() else 0
        self._renewed_ns = sent_ns
        self._next_ns = now + self.settings.retry_period_ns

    def _lose(self, problem: str) -> None:
        self.is_lost = True
        self.problem = f"the lease is lost: {problem}"

    def _wait(self, now: int) -> Wait:
        period_ns = self.settings.retry_period_ns
        self._next_ns = now + period_ns + int(self._random.random() * (_JITTER - 1) * period_ns)
        return Wait(self._next_ns)


def _spec(raw: Raw | None) -> Raw:
    spec = None if raw is None else raw.get("spec")
    return spec if isinstance(spec, dict) else {}


def _micro(ns: int) -> str:
    """A time as meta/v1 MicroTime is written: with six digits after the second."""
    return f"{format_time(ns)[:-1]}.{ns // 1_000 % 1_000_000:06}Z"
