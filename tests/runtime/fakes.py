"""A clock that a test sets, and a transport that answers when a test says so."""

from podium.runtime.runtime import RequestedAction


class FakeClock:
    """A clock at ``time_ns``, which passes by ``step_ns`` with each read."""

    def __init__(self, now: int = 0) -> None:
        self.time_ns = now
        self.step_ns = 0

    def now(self) -> int:
        self.time_ns += self.step_ns
        return self.time_ns


class FakeTransport:
    """Keeps what it is asked for; ``times`` are when."""

    def __init__(self) -> None:
        self.asked: list[RequestedAction] = []
        self.times: list[int] = []

    def send(self, requested: RequestedAction, now: int) -> None:
        self.asked.append(requested)
        self.times.append(now)
