"""The assembly of a control plane: the store, its initial objects, and the components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from podium.api import node
from podium.api.errors import InputError, shown
from podium.api.input.codec import Document, decode
from podium.api.meta import Kubernetes, Raw, value_at
from podium.api.pod import Pod
from podium.api.workloads import POD_PATHS
from podium.controllers.kubelets.host import CAPACITY
from podium.controlplane import components, control_plane, ledger_file
from podium.controlplane.account import DisruptionAccount
from podium.controlplane.population import Population, populate
from podium.runtime.clock import Clock
from podium.store import durable_journal, initial_objects
from podium.store.store import Store

_LABELS = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}

DEFAULT_TEMPLATE: Raw = {"status": {"capacity": dict(CAPACITY), "allocatable": dict(CAPACITY)}}
"""The default template of nodes."""

# A marker that the cluster is known only in part, for as long as it is stored.
_ORIGIN: Raw = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "podium-origin", "namespace": "kube-system"},
    "data": {"ownersMayBeElsewhere": "true"},
}
_ORIGIN_KEY = "kube-system/podium-origin"
# The number of events that lists and watches of earlier versions can use; each takes about 1 kB.
_LOG_CAPACITY = 50_000


@dataclass(frozen=True, slots=True)
class InitialContent:
    """The initial content of a cluster: objects, and a number of nodes from a template."""

    documents: Sequence[Document] = ()
    nodes: int = 0
    template: Raw = field(default_factory=lambda: DEFAULT_TEMPLATE)


class Assembled(msgspec.Struct, frozen=True):
    """A control plane, and the result of creating its initial objects."""

    plane: control_plane.EmbeddedControlPlane
    population: Population


def open_store(seed: int, journal: durable_journal.DurableJournal | None = None) -> Store:
    """Return a store with the content of the journal. Raises JournalError for a damaged journal."""
    return Store(seed=seed, journal=journal, require_namespaces=True, log_capacity=_LOG_CAPACITY)


def all_objects(store: Store) -> Iterator[Kubernetes]:
    """Yield the objects of all kinds."""
    for resource in store.resources.all():
        yield from (stored.object for stored in store.objects(resource.name))


def _absent_accounts(store: Store) -> set[str]:
    """Return the keys of service accounts that pods and workloads name and that do not exist."""
    named = {
        f"{stored.object.metadata.namespace}/{name}"
        for kind, path in POD_PATHS.items()
        for stored in store.objects(kind)
        if (name := value_at(stored.raw, *path, "spec", "serviceAccountName"))
    }
    return {key for key in named if store.find("ServiceAccount", key) is None}


def assemble(
    store: Store,
    clock: Clock,
    settings: components.ControlPlaneSettings,
    beginning: InitialContent,
    journal: durable_journal.DurableJournal | None = None,
    ledger: ledger_file.LedgerFile | None = None,
) -> Assembled:
    """Return a control plane with these objects, and with those of the store from `open_store`.

    If objects name owners that do not exist, or pods run among them and no Secret is there, the cluster counts as
    partially known: owners and contents are assumed to exist, and the store records that. A ``ledger`` accounts for
    disruptions. Raises InputError for objects that the store refuses, JournalError if the journal cannot be written.
    """
    now = clock.now()
    store.serve_as(settings.release)
    initial_objects.create_initial_objects(store, now=now)
    population = populate(store, beginning.documents, now)
    for key in sorted(_absent_accounts(store)) if population.created else ():
        # A cluster that has such pods has their accounts.
        namespace, _, name = key.partition("/")
        absent = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}
        store.create(absent, now=now)
    objects = list(all_objects(store)) if population.created else []
    owners = (owner.uid for object_ in objects for owner in object_.metadata.owner_references)
    has_absent_owners = not {object_.metadata.uid for object_ in objects}.issuperset(owners)
    has_run = any(isinstance(object_, Pod) and object_.status.phase == "Running" for object_ in objects)
    if (has_absent_owners or (has_run and not store.objects("Secret"))) and store.find(
        "ConfigMap", _ORIGIN_KEY
    ) is None:
        # The cluster is known only in part.
        store.create(_ORIGIN, now=now)
    for name in (f"node-{number}" for number in range(1, beginning.nodes + 1)):
        if store.find("Node", name) is None:
            store.create(node_of(beginning.template, name), now=now, is_new=True)
    is_whole = store.find("ConfigMap", _ORIGIN_KEY) is None
    settings = replace(settings, absent_is_gone=settings.absent_is_gone and is_whole)
    store.requires_accounts = settings.absent_is_gone
    if journal is not None:
        journal.sync()
    account = None if ledger is None else DisruptionAccount(store, ledger, settings.rules, now)
    return Assembled(control_plane.EmbeddedControlPlane(store, clock, settings, journal, account), population)


def check_template(template: object, source: str = "") -> Raw:
    """Return the template if it is a Node, except for the name. Raises InputError."""
    if not isinstance(template, dict) or not isinstance(template.get("metadata", {}), dict):
        raise InputError(f"{shown(template)} is not a Node", source=source)
    for name, right in (("apiVersion", "v1"), ("kind", "Node")):
        if template.get(name, right) != right:
            raise InputError(f"{shown(template[name])} is not {right}", source=source, path=f".{name}")
    decode(node_of(template, "node-1"), source)
    return template


def node_of(template: Raw, name: str) -> Raw:
    """Return a node of that name."""
    metadata: Raw = template.get("metadata", {})
    labels = {**_LABELS, **metadata.get("labels", {}), node.HOSTNAME_LABEL: name}
    node_ = {"spec": {}, **template, "apiVersion": "v1", "kind": "Node"}
    return {**node_, "metadata": {**metadata, "name": name, "labels": labels}}
