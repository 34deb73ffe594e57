"""The ConfigMap that a rescheduler's configuration is read from while it runs.

Under `config.yaml` it has a ReschedulerConfiguration, and under `paused` the switch that stops all evictions, whatever
the configuration says. A version that cannot be used is refused as a whole, and the one before stays; where there was
none before in this life, nobody is moved until there is one that can be used, since nobody knows any more what was
wanted. A ConfigMap that is deleted takes nothing with it: the last version stays. No code is loaded for a name that
stands there alone.

Source: controlled-rescheduling.md, Rescheduler ("The rescheduler will be configured using ConfigMap").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from podium.api.basis import Caveat
from podium.api.errors import InputError, escape
from podium.api.meta import Kubernetes, Raw
from podium.framework.rescheduling.configuration import CONFIG_MAP_KEY, parse_rescheduler
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.machines.actions import Record

CONFIG_MAP = "ConfigMap"
PAUSED_KEY = "paused"
"""Under which key a ConfigMap stops all evictions: with anything but "false"."""

READ, REFUSED = "ConfigurationRead", "ConfigurationRefused"
"""The reasons of the events that tell what became of a version."""

# As long as a message of an event may be.
_LONGEST = 1_000
_NOT_PAUSED = ("", "false")


class SettingsMap:
    """The settings by a ConfigMap of that key; ``given`` are those that hold where it says nothing.

    ``use`` takes settings into use, and raises InputError for those that cannot be.
    """

    def __init__(self, key: str, given: ReschedulerSettings, use: Callable[[ReschedulerSettings], None]) -> None:
        self._key = key
        self._given = given
        self._use = use
        self._wanted = given
        self._data: Raw | None = None
        self._was_read = False
        self._is_stopped = False

    def changed(self, object_: Kubernetes, raw: Raw) -> list[Record]:
        """Take in a ConfigMap; what is to be told about it."""
        data = raw.get("data")
        data = data if isinstance(data, dict) else {}
        if object_.key != self._key or data == self._data:
            return []
        self._data = data
        self._is_stopped = str(data.get(PAUSED_KEY, "")).strip().lower() not in _NOT_PAUSED
        before = self._wanted
        try:
            self._wanted, caveats = self._read(data)
            self._use(self._as_stopped(self._wanted))
        except InputError as error:
            self._wanted = before if self._was_read else replace(before, is_paused=True)
            self._use(self._as_stopped(self._wanted))
            kept = "the configuration before it stays" if self._was_read else "nobody is moved until it can be used"
            return [self._told(object_, "Warning", REFUSED, f"{error}; {kept}")]
        self._was_read = True
        state = "all evictions are stopped" if self._as_stopped(self._wanted).is_paused else "it is in use"
        told = "".join(f"; {caveat.message}" for caveat in caveats)
        return [self._told(object_, "Warning" if told else "Normal", READ, escape(state + told, _LONGEST))]

    def _read(self, data: Raw) -> tuple[ReschedulerSettings, tuple[Caveat, ...]]:
        """The settings, and what of those asked for is not done."""
        text = data.get(CONFIG_MAP_KEY)
        if text is None:
            return self._given, ()
        source = f"{CONFIG_MAP} {self._key}, {CONFIG_MAP_KEY}"
        configuration = parse_rescheduler(str(text), source)
        settings = configuration.settings
        known = {policy.name for policy in self._given.policies}
        for policy in settings.policies:
            if ":" in policy.name and policy.name not in known:
                problem = (
                    "is loaded only where the program's own configuration names it: a ConfigMap brings no code along"
                )
                raise InputError(problem, source=source, object=f"policy {policy.name}", path=".name")
        return settings, configuration.caveats

    def _as_stopped(self, settings: ReschedulerSettings) -> ReschedulerSettings:
        return replace(settings, is_paused=settings.is_paused or self._is_stopped)

    def _told(self, object_: Kubernetes, type_: str, reason: str, message: str) -> Record:
        return Record("", object_.metadata.uid, type_, reason, message, workload=f"{CONFIG_MAP} {self._key}")
