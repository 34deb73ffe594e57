"""Puts a control plane together: a store that begins with a journal or anew, the objects of its beginning, the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from podium.api.input.codec import Document
from podium.api.meta import Kubernetes, Raw
from podium.driver.clock import Clock
from podium.plane.account import PlaneAccount
from podium.plane.control_plane import ControlPlane
from podium.plane.initial import Population, has_absent_owners, populate
from podium.plane.keeper import Keeper
from podium.plane.ledger_file import LedgerFile
from podium.plane.nodes import DEFAULT_TEMPLATE, create_nodes
from podium.plane.plane_settings import PlaneSettings
from podium.store.initial_objects import create_initial_objects
from podium.store.journal.durable import DurableJournal
from podium.store.store import Store

# Says of a cluster that it is known in part, for as long as it is kept.
_ORIGIN: Raw = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "podium-origin", "namespace": "kube-system"},
    "data": {"ownersMayBeElsewhere": "true"},
}
_ORIGIN_KEY = "kube-system/podium-origin"
# How much of what happened is known to whoever lists or watches from an earlier version on; it takes some 1 kB each.
_LOG_CAPACITY = 50_000


@dataclass(frozen=True, slots=True)
class Beginning:
    """With what a cluster begins: objects, and a number of nodes that are made by a template."""

    documents: Sequence[Document] = ()
    nodes: int = 0
    template: Raw = field(default_factory=lambda: DEFAULT_TEMPLATE)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A control plane, and what became of the objects that it was to begin with."""

    plane: ControlPlane
    population: Population


def open_store(seed: int, journal: DurableJournal | None = None) -> Store:
    """A store with what the journal keeps. Raises JournalError for one that is damaged."""
    return Store(seed=seed, journal=journal, require_namespaces=True, log_capacity=_LOG_CAPACITY)


def all_objects(store: Store) -> Iterator[Kubernetes]:
    """The objects of all kinds."""
    for resource in store.resources.all():
        yield from (stored.object for stored in store.objects(resource.name))


def assemble(
    store: Store,
    clock: Clock,
    settings: PlaneSettings,
    beginning: Beginning,
    journal: DurableJournal | None = None,
    ledger: LedgerFile | None = None,
) -> Assembled:
    """A control plane with these objects, and with those of the store, which `open_store` has made.

    Where objects name owners that are not there, the cluster is known in part: what owns them is taken to be alive, and
    the cluster remembers that. A ``ledger`` keeps an account of its disruptions. Raises InputError for what the store
    refuses, JournalError for what cannot be kept.
    """
    keeper = None if journal is None else Keeper(journal, store.version)
    now = clock.now()
    create_initial_objects(store, now=now)
    population = populate(store, beginning.documents, now)
    if population.created and has_absent_owners(store) and store.find("ConfigMap", _ORIGIN_KEY) is None:
        store.create(_ORIGIN, now=now)
    create_nodes(store, beginning.nodes, beginning.template, now)
    is_whole = store.find("ConfigMap", _ORIGIN_KEY) is None
    settings = replace(settings, absent_is_gone=settings.absent_is_gone and is_whole)
    if keeper is not None:
        keeper.keep(store.version)
    account = None if ledger is None else PlaneAccount(store, ledger, settings.rules, now)
    return Assembled(ControlPlane(store, clock, settings, keeper, account), population)
