"""What can go wrong with plugins and their configuration."""

from __future__ import annotations

from types import TracebackType

from podium.api.errors import PodiumError
from podium.cluster.pods import PodRecord


class PluginError(PodiumError):
    """A plugin broke its contract or failed; says which one, at which point, for which pod."""


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
        if isinstance(error, Exception) and not isinstance(error, PluginError):
            where = f"plugin {self.plugin} failed at {self.point} for pod {self.pod.key}"
            raise PluginError(f"{where}: {type(error).__name__}: {error}") from error
