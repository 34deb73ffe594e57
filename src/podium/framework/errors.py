"""What can go wrong with plugins and their configuration."""

from __future__ import annotations

from types import TracebackType

from podium.api.errors import PodiumError
from podium.cluster.pods import PodRecord


class PluginError(PodiumError):
    """A plugin broke its contract or failed; says which one, at which point, for which pod."""


def is_failure(error: BaseException | None) -> bool:
    """Whether what a plugin's code raised says that it failed: everything but a person's Ctrl-C.

    Code that ends the program, as `sys.exit` does, has failed too: it is for people to say when the program ends.
    """
    return error is not None and not isinstance(error, KeyboardInterrupt)


def failure(error: BaseException, plugin: str, point: str, pod: PodRecord) -> PluginError:
    """What a plugin's code raised, as an error that says where."""
    where = f"plugin {plugin} failed at {point} for pod {pod.key}"
    return PluginError(f"{where}: {type(error).__name__}: {error}")


class Calling:
    """Around a call of a plugin: what the plugin raises becomes a PluginError, with the plugin's own as its cause."""

    __slots__ = ("plugin", "pod", "point")

    def __init__(self, plugin: str, point: str, pod: PodRecord) -> None:
        self.plugin = plugin
        self.point = point
        self.pod = pod

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None and is_failure(error) and not isinstance(error, PluginError):
            raise failure(error, self.plugin, self.point, self.pod) from error
