"""How a program is to run at a cluster: what the command line and its configuration say together."""

from __future__ import annotations

import msgspec

from podium.app.live.health import HealthSettings
from podium.app.live.logs import Format
from podium.client.leading.leader_election import LeaseSettings
from podium.client.transport import TransportSettings
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.plane.ledger_file import KEPT_SECONDS


class ProgramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every program at a cluster has.

    ``lease`` None: nobody else runs, so that nobody is elected. With ``dry_run`` nothing is written. ``drain_s`` is how
    long a program that stops waits for answers. While there is a file ``pause_file`` ("" for none), no pod is
    disrupted. ``ledger`` is a file for an account of disruptions, "" for none, that are kept for so long (0: always).
    """

    identity: str = "podium"
    lease: LeaseSettings | None = None
    dry_run: bool = False
    allows_exec: bool = False
    health: HealthSettings = HealthSettings()
    transport: TransportSettings = TransportSettings()
    request_timeout_s: float = 30.0
    pause_file: str = ""
    ledger: str = ""
    ledger_kept_seconds: float = KEPT_SECONDS
    drain_s: float = 10.0
    seed: int = 0
    log_format: Format = "text"
    verbosity: int = 0


class LiveSettings(ProgramSettings, frozen=True, kw_only=True):
    """How a scheduler is to run.

    ``trims_avoid_lists``: whoever leads takes off the nodes' avoid lists what is over. ``decisions`` is a file for
    them, "" for none.
    """

    configuration: Configuration
    feature_gates: FeatureGates = FeatureGates()
    trims_avoid_lists: bool = False
    allows_insecure_preemption: bool = False
    decisions: str = ""
