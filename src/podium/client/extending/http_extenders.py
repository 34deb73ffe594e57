"""The extenders of a configuration, asked over HTTP by a scheduler that runs on a thread of its own.

A question holds the scheduler's attempt up until its answer has come, as kube-scheduler's attempts are, and nothing
else: connections are served by the event loop on another thread.

Source: pkg/scheduler/extender.go (HTTPExtender), pkg/scheduler/schedule_one.go (extendersBinding).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import msgspec

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.client.extending.extender_answers import read_binding, read_filter, read_priorities, read_victims
from podium.client.extending.extender_client import ExtenderClient, UnansweredError
from podium.cluster.pods import PodRecord
from podium.framework.extenders import ExtenderError, Extenders, FilterAnswer, VictimIds, Victims
from podium.framework.settings.extenders import Extender, is_interested
from podium.machines.actions import Bind
from podium.machines.observations import Problem
from podium.store.stored import Stored

Value = TypeVar("Value")

Find = Callable[[str, str], Stored | None]
"""An object as the API server shows it, by kind and key; None where it shows none."""


class HTTPExtender:
    """One extender (see `podium.framework.extenders.Extender`); never to be asked on the event loop's own thread."""

    def __init__(self, client: ExtenderClient, find: Find, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._settings = client.settings
        self._find = find
        self._loop = loop

    @property
    def name(self) -> str:
        """Its URL."""
        return self._client.name

    @property
    def is_ignorable(self) -> bool:
        return self._settings.ignorable

    @property
    def weight(self) -> int:
        return self._settings.weight

    @property
    def filters(self) -> bool:
        return bool(self._settings.filter_verb)

    @property
    def prioritizes(self) -> bool:
        return bool(self._settings.prioritize_verb)

    @property
    def preempts(self) -> bool:
        return bool(self._settings.preempt_verb)

    def is_interested(self, pod: PodRecord) -> bool:
        return is_interested(self._settings, pod.spec)

    def filter(self, pod: PodRecord, names: Sequence[str]) -> FilterAnswer:
        takes_names = self._settings.node_cache_capable
        return self._ask(
            self._settings.filter_verb,
            self._about_nodes(pod, names),
            lambda answer: read_filter(answer, takes_names=takes_names),
        )

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Mapping[str, int]:
        return self._ask(self._settings.prioritize_verb, self._about_nodes(pod, names), read_priorities)

    def preempt(self, pod: PodRecord, victims: Mapping[str, Victims]) -> Mapping[str, VictimIds]:
        takes_names = self._settings.node_cache_capable
        about = {
            name: {
                "Pods": [{"UID": victim.uid} if takes_names else self._object("Pod", victim.key) for victim in of.pods],
                "NumPDBViolations": of.budget_violations,
            }
            for name, of in victims.items()
        }
        args = {
            "Pod": self._object("Pod", pod.key),
            "NodeNameToVictims": None if takes_names else about,
            "NodeNameToMetaVictims": about if takes_names else None,
        }
        return self._ask(self._settings.preempt_verb, args, read_victims)

    def _about_nodes(self, pod: PodRecord, names: Sequence[str]) -> dict[str, Any]:
        """ExtenderArgs: names for who keeps nodes itself, whole nodes for others."""
        about = {"Pod": self._object("Pod", pod.key), "Nodes": None, "NodeNames": None}
        if self._settings.node_cache_capable:
            return about | {"NodeNames": list(names)}
        return about | {"Nodes": {"metadata": {}, "items": [self._object("Node", name) for name in names]}}

    def _object(self, kind: str, key: str) -> Raw:
        found = self._find(kind, key)
        if found is None:
            raise ExtenderError(f"extender {self.name} cannot be asked: {kind} {key} is gone")
        return found.raw

    def _ask(self, verb: str, args: Mapping[str, Any], read: Callable[[object], Value]) -> Value:
        asked = asyncio.run_coroutine_threadsafe(self._client.ask(verb, msgspec.json.encode(args)), self._loop)
        try:
            answer = asked.result()
        except CancelledError:
            raise ExtenderError(f"extender {self.name} is not asked any more: the scheduler ends") from None
        return self._client.understood(verb, answer, read)


class ExtenderBinder:
    """Has pods bound by the extender that binds (see `podium.client.transport.Binder`)."""

    def __init__(self, client: ExtenderClient, find: Find) -> None:
        self._client = client
        self._find = find

    @property
    def is_ignorable(self) -> bool:
        """Whether the API server is asked where the extender did not bind."""
        return self._client.settings.ignorable

    def binds(self, action: Bind) -> bool:
        """Whether the binding is the extender's."""
        found = self._find("Pod", action.pod)
        pod = None if found is None else found.object
        return isinstance(pod, Pod) and is_interested(self._client.settings, pod.spec)

    async def bind(self, action: Bind, most_s: float) -> Problem | None:
        """Have a pod bound; None, or the problem where that failed: of code 0 where nobody knows."""
        namespace, _, name = action.pod.rpartition("/")
        args = {"PodName": name, "PodNamespace": namespace, "PodUID": action.uid, "Node": action.node_name}
        verb = self._client.settings.bind_verb
        try:
            answer = await self._client.ask(verb, msgspec.json.encode(args), most_s)
            self._client.understood(verb, answer, read_binding)
        except UnansweredError as error:
            return Problem(0, "", str(error)) if error.was_sent else Problem(503, "ServiceUnavailable", str(error))
        except ExtenderError as error:
            return Problem(500, "ExtenderError", str(error))
        return None


class HTTPExtenders:
    """All extenders of a configuration."""

    def __init__(self, settings: Sequence[Extender], source: str, now: Callable[[], int]) -> None:
        """Raises InputError for what cannot be used."""
        self._clients = [ExtenderClient(extender, source, now) for extender in settings]

    @property
    def unchecked(self) -> list[str]:
        """Those whose certificates are not checked."""
        return [client.name for client in self._clients if client.is_unchecked]

    def open(self) -> None:
        """Begin, on the running event loop."""
        for client in self._clients:
            client.open()

    async def close(self) -> None:
        """End all connections."""
        for client in self._clients:
            await client.close()

    def asked(self, find: Find, loop: asyncio.AbstractEventLoop) -> Extenders:
        """The extenders as a scheduler asks them that runs on another thread than the loop's."""
        return Extenders([HTTPExtender(client, find, loop) for client in self._clients])

    def binder(self, find: Find) -> ExtenderBinder | None:
        """The one that binds; None where none does. A configuration has one at most."""
        binding = [client for client in self._clients if client.settings.bind_verb]
        return ExtenderBinder(binding[0], find) if binding else None
