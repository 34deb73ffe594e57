"""The controllers of objects that every namespace has, and of the rules of aggregated ClusterRoles.

Source: pkg/controller (serviceaccount, certificates/rootcacertpublisher, clusterroleaggregation, servicecidrs), and
pkg/controlplane/controller/clusterauthenticationtrust.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

from msgspec import ValidationError, convert

from podium.api.errors import InputError
from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.api.policy import ResourceQuota
from podium.api.selectors import LabelSelector, Selector, compile_label_selector
from podium.api.storage import CLASS_PROTECTION
from podium.apirequests.admission.policies import type_checks
from podium.controlplane.component_names import ROLE_AGGREGATION, ROOT_CA_PUBLISHER, SERVICE_ACCOUNTS
from podium.store.admission.quotas import attributes_classes
from podium.store.admission.service_addresses import IN_USE_RANGE, RANGE_FINALIZER, READY_RANGE, is_range_needed
from podium.store.errors import StoreError
from podium.store.initial_objects import dangling_condition
from podium.store.store import Store
from podium.store.stored import Stored, with_conditions
from podium.store.verbs.deletion import default_service_account
from podium.store.watch_log import WatchEvent

_RANGE, _SERVICE = "ServiceCIDR", "Service"
_FLOW, _LEVEL = "FlowSchema", "PriorityLevelConfiguration"
_LEVEL_NAME = ("spec", "priorityLevelConfiguration", "name")
# By kind: the kind whose objects' status may depend on it.
_CONCERNED = {_FLOW: (_FLOW,), _LEVEL: (_FLOW,), _RANGE: (_RANGE,), _SERVICE: (_RANGE,)}
_CLASS, _IN_CLASS = "VolumeAttributesClass", ("PersistentVolume", "PersistentVolumeClaim")
_CONCERNED |= dict.fromkeys((_CLASS, *_IN_CLASS), (_CLASS,))
_POLICY, _SEEN = "ValidatingAdmissionPolicy", ("status", "observedGeneration")
# The total length of the expressions of policies whose types are checked at once.
_CHECKED_AT_ONCE = 1_024
_NAMESPACE, _ACCOUNT, _CONFIG_MAP, _ROLE = "Namespace", "ServiceAccount", "ConfigMap", "ClusterRole"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
# Programs that wait for the bundle expect some text in it.
_NO_AUTHORITY = "# This server takes connections without TLS, so there is no certificate authority.\n"


class RequiredObjects:
    """The controllers, as far as they are not in ``without``.

    Each namespace has a ServiceAccount `default`, and a ConfigMap with the ``authority``, which verifies the server;
    kube-system has one with the ``client_authority``. An aggregated ClusterRole has the rules of the roles that it
    selects. The status of a ResourceQuota that a client has written is computed again. Validating policies get warnings
    about the types in their expressions, and FlowSchemas a condition about their priority level. ServiceCIDRs become
    ready, and wait for their addresses if they are deleted; VolumeAttributesClasses wait for volumes and claims.
    """

    def __init__(self, store: Store, authority: str, client_authority: str, without: Collection[str]) -> None:
        self._store = store
        self._authority = {"ca.crt": authority or _NO_AUTHORITY}
        self._client_authority = {"client-ca-file": client_authority} if client_authority else {}
        self._without = without
        # The namespaces to look at.
        self._due: dict[str, None] = {}
        self._has_new_roles = True
        # The objects whose status may be outdated, by kind and key.
        self._stale: dict[tuple[str, str], None] = {}
        # The checks of policies that are under way, by name.
        self._checks: dict[str, Iterator[int | Raw]] = {}
        self.observe_all()

    def observe_all(self) -> None:
        """Look at everything again."""
        self._due |= {stored.key: None for stored in self._store.objects(_NAMESPACE)}
        self._has_new_roles = True

    def observe(self, event: WatchEvent) -> None:
        """Look again at what a write may concern."""
        stored = event.stored
        if stored.kind == _NAMESPACE:
            self._due[stored.key] = None
        elif stored.kind in (_ACCOUNT, _CONFIG_MAP):
            self._due[stored.object.metadata.namespace] = None
        elif stored.kind == _ROLE:
            self._has_new_roles = True
        elif isinstance(stored.object, ResourceQuota) and stored.object.status.hard != stored.object.spec.hard:
            self._stale[stored.kind, stored.key] = None
        elif stored.kind == _POLICY:
            seen, generation = (value_at(stored.raw, *path) for path in (_SEEN, ("metadata", "generation")))
            self._stale |= {(stored.kind, stored.key): None} if seen != generation else {}
        for kind in _CONCERNED.get(stored.kind, ()):
            self._stale |= {(kind, found.key): None for found in self._store.objects(kind)}

    def work(self, now: int) -> bool:
        """Write what is missing; return whether there was anything to look at."""
        due, self._due = self._due, {}
        has_new_roles, self._has_new_roles = self._has_new_roles, False
        version = self._store.version
        stale, self._stale = self._stale, {}
        for stored in filter(None, (self._store.find(*of) for of in stale)):
            self._renew(stored, now)
        for name in due:
            namespace = self._store.find(_NAMESPACE, name)
            if namespace is not None and namespace.object.metadata.deletion_timestamp is None:
                if SERVICE_ACCOUNTS not in self._without:
                    self._write(default_service_account(name), now)
                if ROOT_CA_PUBLISHER not in self._without:
                    annotations = {"kubernetes.io/description": _DESCRIPTION}
                    self._write(_config_map("kube-root-ca.crt", name, self._authority, annotations), now)
                if name == "kube-system":
                    self._write(_config_map("extension-apiserver-authentication", name, self._client_authority), now)
        if has_new_roles and ROLE_AGGREGATION not in self._without:
            self._aggregate()
        self.check_types()
        return self._store.version != version

    def check_types(self) -> bool:
        """Check the types in some expressions of policies, and return whether others are left."""
        left = _CHECKED_AT_ONCE
        while self._checks and left > 0:
            name, checks = next(iter(self._checks.items()))
            checked = next(checks)
            if isinstance(checked, int):
                left -= checked
                continue
            del self._checks[name]
            if (stored := self._store.find(_POLICY, name)) is not None:
                self._store.update_status({**stored.raw, "status": object_at(stored.raw, "status") | checked})
        return bool(self._checks)

    def _renew(self, stored: Stored, now: int) -> None:
        """Write the status of an object again."""
        if stored.kind == _POLICY:
            self._checks[stored.key] = type_checks(self._store.resources, stored.raw)
        elif stored.kind == _RANGE:
            _keep_range(self._store, stored, now)
        elif stored.kind == _CLASS:
            _keep_class(self._store, stored)
        elif stored.kind == _FLOW:
            level, status = str(value_at(stored.raw, *_LEVEL_NAME)), object_at(stored.raw, "status")
            condition = dangling_condition(level, exists=self._store.find(_LEVEL, level) is not None)
            conditions = with_conditions(objects_at(status, "conditions"), (condition,), now)
            self._store.update_status({**stored.raw, "status": {**status, "conditions": conditions}})
        else:
            # Any update counts the usage again.
            self._store.update(stored.raw)

    def _write(self, raw: Raw, now: int) -> None:
        """Create the object if it is missing, or restore its data."""
        metadata = raw["metadata"]
        stored = self._store.find(raw["kind"], f"{metadata['namespace']}/{metadata['name']}")
        # If a quota or an immutable object refuses the write, the next write in the namespace repeats it.
        with suppress(StoreError):
            if stored is None:
                self._store.create(raw, now=now, is_new=True)
            elif (stored.raw.get("data") or {}) != raw.get("data", {}):
                self._store.update({**stored.raw, "data": raw["data"]})

    def _aggregate(self) -> None:
        """Write the rules of all aggregated roles until nothing changes, since roles may aggregate aggregated ones."""
        version = -1
        while version != self._store.version:
            version = self._store.version
            roles = self._store.objects(_ROLE)
            for stored in roles:
                selectors = _selectors(stored.raw)
                rules: list[Raw] = []
                for role in roles:
                    labels = role.object.metadata.labels
                    if role.key != stored.key and any(selector.matches(labels) for selector in selectors):
                        rules += [rule for rule in role.raw.get("rules") or () if rule not in rules]
                if selectors and rules != (stored.raw.get("rules") or []):
                    self._store.update({**stored.raw, "rules": rules})


def _selectors(role: Raw) -> list[Selector]:
    """Return the selectors of the roles that a role aggregates; none if they are malformed."""
    try:
        written = convert(value_at(role, "aggregationRule", "clusterRoleSelectors") or [], list[LabelSelector])
        return [compile_label_selector(selector) for selector in written]
    except (InputError, ValidationError):
        return []


def _config_map(name: str, namespace: str, data: Raw, annotations: Raw | None = None) -> Raw:
    metadata: Raw = {"name": name, "namespace": namespace, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "v1", "kind": _CONFIG_MAP, "metadata": metadata, "data": data}


def _keep_range(store: Store, stored: Stored, now: int) -> None:
    """Make a range ready, and keep a deleted one until no Service has an address of it alone."""
    finalizers, condition = list(stored.object.metadata.finalizers), READY_RANGE
    if stored.object.metadata.deletion_timestamp is None:
        finalizers += [] if RANGE_FINALIZER in finalizers else [RANGE_FINALIZER]
    elif is_range_needed(stored.key, _raws(store, _RANGE), _raws(store, _SERVICE)):
        condition = IN_USE_RANGE
    else:
        finalizers.remove(RANGE_FINALIZER)
    raw = store.update({**stored.raw, "metadata": {**stored.raw["metadata"], "finalizers": finalizers}}).raw
    if RANGE_FINALIZER in finalizers:
        conditions = with_conditions(objects_at(raw, "status", "conditions"), (condition,), now)
        store.update_status({**raw, "status": {"conditions": conditions}})


def _keep_class(store: Store, stored: Stored) -> None:
    """Keep a deleted class until no volume and no claim has it, or is to get it (vac_protection_controller.go)."""
    before = stored.object.metadata.finalizers
    left = [finalizer for finalizer in before if finalizer != CLASS_PROTECTION]
    named = (name for kind in _IN_CLASS for raw in _raws(store, kind) for name in attributes_classes(raw))
    is_kept = stored.object.metadata.deletion_timestamp is None or stored.key in named
    if is_kept is not (CLASS_PROTECTION in before):
        finalizers = [*left, CLASS_PROTECTION] if is_kept else left
        store.update({**stored.raw, "metadata": {**stored.raw["metadata"], "finalizers": finalizers}})


def _raws(store: Store, kind: str) -> list[Raw]:
    return [stored.raw for stored in store.objects(kind)]
