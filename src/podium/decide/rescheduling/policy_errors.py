"""What can go wrong with policies: which one it was, at what, and where in its code."""

from __future__ import annotations

from types import TracebackType

from podium.framework.errors import PluginError, is_failure


class PolicyError(PluginError):
    """A policy broke its contract or failed."""

    def __init__(self, policy: str, problem: str) -> None:
        super().__init__(f"policy {policy}: {problem}")
        self.policy = policy


class CallingPolicy:
    """Around a call of a policy: what it raises becomes a PolicyError, with the policy's own as its cause."""

    __slots__ = ("_method", "_policy")

    def __init__(self, policy: str, method: str) -> None:
        self._policy = policy
        self._method = method

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None and is_failure(error) and not isinstance(error, PolicyError | StopIteration):
            problem = f"{self._method} failed{_place(traceback)}: {type(error).__name__}: {error}"
            raise PolicyError(self._policy, problem) from error


def _place(traceback: TracebackType | None) -> str:
    """The file and line where it happened: the innermost one in the file of what was called."""
    called = None if traceback is None else traceback.tb_next
    last = frame = called
    while frame is not None:
        if called is not None and frame.tb_frame.f_code.co_filename == called.tb_frame.f_code.co_filename:
            last = frame
        frame = frame.tb_next
    return "" if last is None else f" in {last.tb_frame.f_code.co_filename}, line {last.tb_lineno}"
