"""The web page of a cluster that is followed by watches."""

from __future__ import annotations

import webbrowser
from dataclasses import replace

from podium.api.kinds import KINDS
from podium.app.live.live_program import LiveProgram, ProgramSettings
from podium.app.live.logs import Log
from podium.app.live.metrics import ProgramMetrics
from podium.app.serving.page.live_page import PREFIX
from podium.client.credentials import ClusterAccess
from podium.client.live_cluster import Watched
from podium.framework.settings.configuration import Configuration
from podium.sim.run_options import RunOptions

_NEEDED = ("Node", "Pod")


class UISettings(ProgramSettings, frozen=True, kw_only=True):
    """The settings of the page; ``configuration`` is that of the cluster's schedulers."""

    configuration: Configuration
    opens: bool = False


class LiveUI(LiveProgram):
    """The page as a program. It shows what its user may list, and writes nothing."""

    user_agent = "podium-ui"
    noun = "the ui"

    def __init__(self, access: ClusterAccess, settings: UISettings, log: Log) -> None:
        super().__init__(access, settings, log, ProgramMetrics())
        self._settings = settings

    def watched(self) -> Watched:
        kinds = frozenset({kind.name for kind in KINDS.values()} | {"Event"})
        return Watched(kinds=kinds, optional=kinds.difference(_NEEDED))

    def run_options(self) -> RunOptions:
        return replace(super().run_options(), configuration=self._settings.configuration)

    def on_started(self) -> None:
        self._log.info("showing the cluster", url=f"{self.url}{PREFIX}", version=str(self.release))
        if self._settings.opens:
            webbrowser.open(f"{self.url}{PREFIX}")
