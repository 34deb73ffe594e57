"""How a scheduler is to run: what the command line and its configuration say together."""

from __future__ import annotations

import msgspec

from podium.app.live.health import HealthSettings
from podium.app.live.logs import Format
from podium.client.leading.leader_election import LeaseSettings
from podium.client.transport import TransportSettings
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.feature_gates import FeatureGates


class LiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``lease`` None: nobody else runs, so that nobody is elected. With ``dry_run`` nothing is written.

    ``trims_avoid_lists``: whoever leads takes off the nodes' avoid lists what is over. ``drain_s`` is how long a
    scheduler that stops waits for answers. ``decisions`` is a file for them, "" for none. While there is a file
    ``pause_file`` ("" for none), no pod is preempted.
    """

    configuration: Configuration
    feature_gates: FeatureGates = FeatureGates()
    identity: str = "podium"
    lease: LeaseSettings | None = None
    dry_run: bool = False
    trims_avoid_lists: bool = False
    allows_exec: bool = False
    allows_insecure_preemption: bool = False
    health: HealthSettings = HealthSettings()
    transport: TransportSettings = TransportSettings()
    request_timeout_s: float = 30.0
    decisions: str = ""
    pause_file: str = ""
    drain_s: float = 10.0
    seed: int = 0
    log_format: Format = "text"
    verbosity: int = 0
