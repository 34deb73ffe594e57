"""How the rescheduler is to run at a cluster."""

from __future__ import annotations

from typing import Literal

from podium.app.live.settings import ProgramSettings
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.settings.configuration import Configuration

PlanForm = Literal["text", "json"]


class ReschedulingSettings(ProgramSettings, frozen=True, kw_only=True):
    """``rescheduling`` is how pods are moved, ``configuration`` that of the cluster's schedulers.

    They are read of the ConfigMap ``config_map`` (`namespace/name`, "" for none) while it runs.
    With ``dry_run`` each plan that says something else than the one before is printed in ``plan_form``, and nobody is
    evicted. With ``is_once`` the program ends after one plan. ``counts_disruptions``: at API servers that know no rates
    of budgets it counts what they limit. ``heeds_avoid_lists``: whether the schedulers heed avoid lists; None: those at
    Podium's own API server do, and no others. Every ``measure_s`` seconds it asks what pods and nodes use, where that
    matters.
    """

    rescheduling: ReschedulerConfiguration
    configuration: Configuration
    plan_form: PlanForm = "text"
    is_once: bool = False
    config_map: str = ""
    counts_disruptions: bool = True
    heeds_avoid_lists: bool | None = None
    measure_s: float = 30.0
