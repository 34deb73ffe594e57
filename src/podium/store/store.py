"""The objects of a cluster under the API server's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from podium.api.avoid_list import AvoidFor
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.left_behind import Wishes
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.replacements import ForReplacement
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.conversion.conversion import as_stored, converted
from podium.store.creations import Creations
from podium.store.definitions.definition import KIND as DEFINITION
from podium.store.definitions.lives import DefinitionLives
from podium.store.errors import unknown_kind
from podium.store.journal.journal import Journal, revisions_of
from podium.store.patches.made_patch import MadePatch
from podium.store.patches.patching import PatchType, patched
from podium.store.reads.listing import ListOptions, Page
from podium.store.stored import Stored
from podium.store.stored_objects import EVERYTHING
from podium.store.verbs.binding import bound, check_binding
from podium.store.verbs.deletion import Propagation, check_mortal, check_preconditions, with_propagation
from podium.store.verbs.disruptions import Disruptions
from podium.store.verbs.eviction import marked
from podium.store.verbs.immutable import check_update
from podium.store.verbs.namespaces import terminating
from podium.store.verbs.readings import decoded, rereading, shared_spec_of, with_status
from podium.store.verbs.replacement import replaced
from podium.store.verbs.scale import SCALE, scale_of, scaled

Subresource = Literal["", "status", "scale"]
_UNSAID = object()


def _as_it_is(raw: Raw) -> Raw:
    return raw


class Store(Creations):
    """Objects of the kinds in `resources`, each at its newest version, and the log of what happened to them.

    Every write that changes something commits one version, the next number, and one more for each quota that counts it;
    a write that changes nothing commits none. A refused write raises StoreError and changes nothing. Objects handed in
    and out are shared, and nobody changes them. Time comes in as `now`, in nanoseconds; uids follow from the seed.

    With a `journal` the store begins with what it keeps, and everything goes there first. `require_namespaces` lets
    objects be created in existing namespaces alone. `log_capacity` is how many of the last events are known.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        log_capacity: int = 100_000,
        resources: APIResources | None = None,
        journal: Journal | None = None,
        require_namespaces: bool = False,
    ) -> None:
        resources = resources or APIResources()
        revisions = revisions_of(journal, resources, seed, log_capacity)
        super().__init__(resources, revisions, require_namespaces=require_namespaces)
        self._disruptions = Disruptions(self._revisions)
        self._definition_lives = DefinitionLives(self._definitions, self)

    def update(self, raw: Raw) -> Stored:
        """Replace an object but for its status and what the server alone writes.

        A `resourceVersion` in `raw` is a condition, and so is a `uid`. When the last finalizer of a deleted object
        goes, so does the object. A DisruptionPolicy brings along what `create` says, as old as itself. Raises
        StoreError 400, 404, 409 and 422.
        """
        return self._replace(self._precondition(raw), raw)

    def _replace(self, previous: Stored, raw: Raw) -> Stored:
        """Write `raw` but for its status and what the server alone writes."""
        resource = previous.resource
        if self._writer is not None:
            self._writer.given = raw["metadata"].get("managedFields")
        updated = replaced(previous, self._definitions.shaped(resource, raw) if resource.is_custom else raw)
        object_ = decoded(resource, updated, shared_spec_of(resource, updated), previous.raw)
        if resource.is_custom:
            self._definitions.check(resource, updated, previous.raw)
        elif resource.name == DEFINITION:
            return self._definition_lives.update(previous, updated, object_)
        check_update(previous, updated, object_)
        self._admission.check_update(previous, object_)
        if isinstance(object_, DisruptionPolicy) and isinstance(previous.object, DisruptionPolicy):
            return self._update_policy(previous, previous.object, updated, object_)
        return self.commit(previous.resource, previous, updated, object_)

    def update_status(self, raw: Raw) -> Stored:
        """Replace an object's status and nothing else; conditions and errors as of `update`.

        A pod that has ended never changes its phase (422). Kinds without a status have no such subresource (404).
        """
        previous = self._precondition(raw)
        return self._replace_status(previous, raw.get("status", _UNSAID))

    def _replace_status(self, previous: Stored, status: Any) -> Stored:
        """Write the status, where one is given."""
        resource = previous.resource
        if not resource.has_status:
            raise unknown_kind(f"{resource.name}/status")
        if status is _UNSAID:
            return self.commit(resource, previous, previous.raw, previous.object)
        updated = {**previous.raw, "status": status}
        if resource.is_custom:
            updated = self._definitions.shaped(resource, updated)
            self._definitions.check(resource, updated, previous.raw)
        return self.commit(resource, previous, updated, with_status(previous, updated))

    def update_part(self, raw: Raw, part: Callable[[Stored, Raw], Raw]) -> Stored:
        """Replace a part of an object that no other update changes; `part` makes of `raw` what is to be written.

        Conditions as of `update`. Raises StoreError 400, 404, 409 and 422.
        """
        previous = self._precondition(raw)
        updated = replaced(previous, part(previous, raw))
        object_ = decoded(previous.resource, updated, shared_spec_of(previous.resource, updated), previous.raw)
        return self.commit(previous.resource, previous, updated, object_)

    def patch(
        self,
        kind: str,
        key: str,
        patch: Any,
        type_: PatchType,
        subresource: Subresource = "",
        api_version: str = "",
        complete: Callable[[Raw], Raw] = _as_it_is,
    ) -> Stored:
        """Change an object, its status or its scale by a patch, in which null stands for nothing.

        The patch is one of the object in that version of its kind, "" for the one that is stored. An object is written
        as `complete` makes it. Raises StoreError as `patched` and `complete` do, and as the update of the result does.
        """
        stored = self.get(kind, key)
        if subresource == "status" and isinstance(patch, MadePatch) and patch.before is stored.raw:
            return self._replace_status(stored, patch.after)
        if subresource == "scale":
            return self.update(scaled(stored, patched(SCALE, scale_of(stored), patch, type_)))
        seen = converted(stored.resource, stored.raw, api_version)
        result = patched(stored.resource, seen, patch, type_, subresource)
        result = as_stored(stored.resource, result, api_version)
        metadata = result["metadata"]
        check_preconditions(stored, str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))
        if subresource == "status":
            return self._replace_status(stored, result.get("status", _UNSAID))
        return self._replace(stored, complete(result))

    def scale(self, kind: str, key: str) -> Raw:
        """The autoscaling/v1 Scale of a workload. Raises StoreError 404, also for a kind that has none."""
        return scale_of(self.get(kind, key))

    def update_scale(self, kind: str, key: str, scale: Raw) -> Stored:
        """Let a workload have as many pods as the scale says. Raises StoreError as `scaled` and `update` do."""
        return self.update(scaled(self.get(kind, key), scale))

    def delete(
        self,
        kind: str,
        key: str,
        *,
        now: int,
        grace_seconds: int | None = None,
        propagation: Propagation = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Stored | None:
        """Delete an object; returns it while it is only terminating, None when it is gone.

        A bound pod that has not ended gets `grace_seconds`, or its own period for None; all else goes at once, but for
        what has finalizers. `uid` and `resource_version` are preconditions where given. What limits how often pods are
        disrupted counts the deletion of one. Raises StoreError 404, 409, 422 for a propagation that there is not, and
        403 for a namespace or a PriorityClass that every cluster has.
        """
        previous = self._expect(kind, key, uid, resource_version)
        check_mortal(previous)
        if kind == DEFINITION:
            return self._definition_lives.delete(previous, now)
        raw = {**previous.raw, "metadata": with_propagation(previous.raw["metadata"], propagation)}
        if previous.kind == "Namespace":
            raw = terminating(raw, is_empty=self._is_empty(previous.key))
        if not isinstance(previous.object, Pod):
            return self.terminate(previous, raw, grace_seconds, now)
        with self.transaction():
            self._disruptions.count(previous.object, now)
            return self.terminate(previous, raw, grace_seconds, now)

    def evict(  # noqa: PLR0913 - one argument for each thing that a request can say
        self,
        key: str,
        *,
        now: int,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        component: str = "",
        avoid_node: bool = False,
        avoid_for: AvoidFor = AvoidFor(),  # noqa: B008 - an immutable value
        for_replacement: ForReplacement = ForReplacement(),  # noqa: B008 - an immutable value
        dry_run: bool = False,
    ) -> Stored | None:
        """Delete a pod if the budgets over it allow it, and debit them (POST pods/eviction); returns as `delete` does.

        `component` is whose cap on disruptions counts, "" for none. `avoid_node` puts the pod's controller on the avoid
        list of its node, `avoid_for` as long as that says; `for_replacement` is left there, too. All of that takes
        place together, or nothing does; a dry run leaves no trace.

        Raises StoreError: 404; 409 for a precondition that is not met; 429 for a budget, a rate or a cap that is used
        up, with the seconds to wait in `details["retryAfterSeconds"]`; 403 for a budget whose status is out of hand;
        500 for a pod with several budgets, unless the DisruptionPolicy requires them all.
        """
        with self.transaction(dry_run=dry_run):
            previous = self._expect("Pod", key, uid, resource_version)
            pod = _pod(previous)
            self._disruptions.grant(pod, component, now)
            wishes = Wishes(avoid_node=avoid_node, avoid_for=avoid_for, for_replacement=for_replacement)
            if wishes:
                self._disruptions.leave_behind(pod, component, wishes, grace_seconds, now)
            return self.terminate(previous, marked(previous.raw, pod, now), grace_seconds, now)

    def delete_collection(
        self,
        kind: str,
        namespace: str = "",
        options: ListOptions = EVERYTHING,
        *,
        now: int,
        grace_seconds: int | None = None,
        propagation: Propagation = "",
    ) -> Page:
        """Delete the objects that `page` finds; returns that list. Raises as `page` and `delete`."""
        page = self.page(kind, namespace, options)
        with self.transaction():
            for stored in page.items:
                self.delete(kind, stored.key, now=now, grace_seconds=grace_seconds, propagation=propagation)
        return page

    def bind(
        self,
        key: str,
        node_name: str,
        *,
        now: int,
        uid: str = "",
        resource_version: str = "",
        target_kind: str = "Node",
    ) -> Stored:
        """Bind a pod to a node: nodeName, PodScheduled=True and no nomination, in one version (POST pods/binding).

        The node need not exist. `uid` and `resource_version` are preconditions where given. Raises StoreError 404, 409,
        and as `check_binding` does.
        """
        previous = self.get("Pod", key)
        pod = _pod(previous)
        if uid != pod.metadata.uid or resource_version:
            check_preconditions(previous, uid, resource_version)
        check_binding(previous, pod, target_kind, node_name)
        return self.commit(previous.resource, previous, *bound(pod, previous.raw, node_name, now))

    def follow_definitions(self) -> None:
        """Serve custom kinds as their definitions say by now: those that were not made after all go again."""
        self._definitions.follow()

    def _let_go(self, resource: APIResource) -> None:
        self._definition_lives.let_go(resource)

    def _is_empty(self, namespace: str) -> bool:
        kinds = (apiresource.name for apiresource in self.resources.all() if apiresource.namespaced)
        return not any(self.objects(kind, namespace) for kind in kinds)

    def _update_policy(self, previous: Stored, before: DisruptionPolicy, raw: Raw, policy: DisruptionPolicy) -> Stored:
        """Write a DisruptionPolicy and the PriorityClasses that it lacks; what was used of its caps still counts."""
        if before.status.caps:
            updated = {**raw, "status": policy.status_carried_over(before)}
            raw, policy = updated, rereading(previous.resource, policy, raw, updated)
        with self.transaction():
            stored = self.commit(previous.resource, previous, raw, policy)
            self._complete_levels(stored)
            return stored


def _pod(stored: Stored) -> Pod:
    if not isinstance(stored.object, Pod):
        raise TypeError(f"{stored.kind} {stored.key} is not a Pod")
    return stored.object
