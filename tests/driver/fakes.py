"""A clock that goes on when somebody waits for it, and a transport whose answers come when a test says so."""

from collections.abc import Callable

from podium.driver.transport import Asked


class FakeClock:
    """Each wait lets time pass to its end, and what ``on_wait`` does; ``waits`` are the ends of all of them."""

    def __init__(self, now: int = 0) -> None:
        self.time_ns = now
        self.waits: list[int | None] = []
        self.on_wait: Callable[[], None] = lambda: None

    def now(self) -> int:
        return self.time_ns

    def wait(self, until_ns: int | None) -> None:
        self.waits.append(until_ns)
        if until_ns is not None:
            self.time_ns = max(self.time_ns, until_ns)
        self.on_wait()

    def wake(self) -> None:
        pass


class FakeTransport:
    """Keeps what it is asked for; ``times`` are when."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.times: list[int] = []

    def send(self, asked: Asked, now: int) -> None:
        self.asked.append(asked)
        self.times.append(now)
