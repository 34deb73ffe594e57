"""The web page of a cluster that is followed by watches."""

from __future__ import annotations

import webbrowser

from podium.api.kinds import KINDS
from podium.app.live import live_program, logs, metrics
from podium.app.serving.page.live_page import PREFIX
from podium.client.credentials import ClusterAccess
from podium.client.live_cluster import Watched

_NEEDED = ("Node", "Pod")


class UISettings(live_program.ProgramSettings, frozen=True, kw_only=True):
    """The settings of the page."""

    opens: bool = False


class LiveUI(live_program.LiveProgram):
    """The page as a program. It shows what its user may list, and writes nothing."""

    user_agent = "podium-ui"
    noun = "the ui"
    _settings: UISettings

    def __init__(self, access: ClusterAccess, settings: UISettings, log: logs.Log) -> None:
        super().__init__(access, settings, log, metrics.ProgramMetrics())

    def watched(self) -> Watched:
        kinds = frozenset({kind.name for kind in KINDS.values()} | {"Event"})
        return Watched(kinds=kinds, optional=kinds.difference(_NEEDED))

    def on_started(self) -> None:
        self._log.info("showing the cluster", url=f"{self.url}{PREFIX}", version=str(self.release))
        if self._settings.opens:
            webbrowser.open(f"{self.url}{PREFIX}")
