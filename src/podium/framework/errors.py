"""What can go wrong with plugins and their configuration."""

from __future__ import annotations

from traceback import walk_tb
from types import TracebackType

from podium.api.errors import PodiumError
from podium.cluster.pods import PodRecord

# Podium's own files: this one is in a room of the package.
_OWN = __file__.rpartition("/")[0].rpartition("/")[0] + "/"
_NOT_PEOPLE_S = frozenset(("dist-packages", "site-packages"))


class PluginError(PodiumError):
    """A plugin broke its contract or failed; says which one, at which point, for which pod."""


def is_failure(error: BaseException | None) -> bool:
    """Whether what a plugin's code raised says that it failed: everything but a person's Ctrl-C.

    Code that ends the program, as `sys.exit` does, has failed too: it is for people to say when the program ends.
    """
    return error is not None and not isinstance(error, KeyboardInterrupt)


def failure(error: BaseException, plugin: str, point: str, pod: PodRecord) -> PluginError:
    """What a plugin's code raised, as an error that says where."""
    told = f"plugin {plugin} failed at {point} for pod {pod.key}: {type(error).__name__}: {error}"
    place = place_of(error)
    return PluginError(f"{told} ({place})" if place else told)


def blame(error: BaseException, plugin: str, point: str, pod: PodRecord) -> None:
    """Raise PluginError for what a plugin's code raised, where it failed by that; do nothing where it did not."""
    if is_failure(error) and not isinstance(error, PluginError):
        raise failure(error, plugin, point, pod) from error


def place_of(error: BaseException) -> str:
    """The file and line that raised an error: the innermost that is neither Podium's own nor a library's.

    "" where all are. The file is told without its folders, so that an answer is the same on every machine.
    """
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [(file, line) for file, line in places if not _is_library(file)]
    return f"{own[-1][0].rpartition('/')[2]}, line {own[-1][1]}" if own else ""


def _is_library(file: str) -> bool:
    """Whether a file is Podium's own, a package's, or none, as of code that was made in memory."""
    return file.startswith((_OWN, "<")) or not _NOT_PEOPLE_S.isdisjoint(file.split("/"))


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
        if error is not None:
            blame(error, self.plugin, self.point, self.pod)
