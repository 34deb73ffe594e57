"""The parts of objects that a snapshot omits.

Environment, commands and hooks of containers, and annotations that Podium does not read, affect no decision, may hold
secrets, and are most of a dump. In pod templates, which are compared with each other, numbers replace the omitted
parts: equal numbers for equal parts, counted from 1 in order of appearance. A number reveals nothing of the part.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Literal

import msgspec

from podium.api.meta import Raw
from podium.api.nested import object_at, objects_at

Part = Literal["annotations", "env", "managed-fields", "secrets"]
"""The parts that can be included."""

PARTS: dict[Part, str] = {
    "annotations": "annotations that Podium does not read",
    "env": "environment, commands, probes and hooks of containers",
    "managed-fields": "managed fields",
    "secrets": "secrets",
}
"""The parts in words, in the order of messages."""

LEFT_OUT_ANNOTATION = "podium.dev/left-out"
"""The annotation of a template that replaces the omitted ones."""

LEFT_OUT_VARIABLE = "PODIUM_LEFT_OUT"
"""The variable of a template's container that replaces its omitted settings."""

# Podium reads all annotations of its own, and these of Kubernetes and of other programs.
_OWN = "podium.dev/"
_READ = frozenset(
    (
        "batch.kubernetes.io/cronjob-scheduled-timestamp",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-index-failure-count",
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
        "cluster-autoscaler.kubernetes.io/scale-down-disabled",
        "controller.kubernetes.io/pod-deletion-cost",
        "deployment.kubernetes.io/revision",
        "deployment.kubernetes.io/revision-history",
        "descheduler.alpha.kubernetes.io/prefer-no-eviction",
        "karpenter.sh/do-not-disrupt",
        "karpenter.sh/do-not-evict",
        "kubernetes.io/config.mirror",
        "kubernetes.io/config.source",
        "kubernetes.io/service-account.name",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "pv.kubernetes.io/provisioned-by",
        "resource.kubernetes.io/extended-resource-claim",
        "resource.kubernetes.io/pod-claim-name",
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "scheduler.kubernetes.io/nominated-node-name",
        "storage.alpha.kubernetes.io/migrated-plugins",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
    )
)

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_CONTAINER_SETTINGS = (
    "args",
    "command",
    "env",
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
)
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_ENDED = ("state", "lastState")


class Slimmer:
    """Omits parts of objects except those `kept`. Its arguments are not changed."""

    def __init__(self, kept: Collection[Part] = ()) -> None:
        self._keeps_annotations = "annotations" in kept
        self._keeps_env = "env" in kept
        self._keeps_managed_fields = "managed-fields" in kept
        self._numbers: dict[bytes, int] = {}

    def slim(self, raw: Raw) -> Raw:
        """Return the object without the omitted parts."""
        slim = self._with_metadata(raw, is_template=False)
        kind, spec = raw.get("kind"), raw.get("spec")
        if kind == "Pod":
            slim = self._pod(slim)
        elif kind == "Scenario" and isinstance(spec, dict):
            slim["spec"] = slim_spec = dict(spec)
            if "steps" in spec:
                slim_spec["steps"] = [
                    {**step, "apply": list(map(self.slim, objects_at(step, "apply")))} if "apply" in step else step
                    for step in objects_at(spec, "steps")
                ]
        elif kind == "ControllerRevision" and isinstance(raw.get("data"), dict):
            slim["data"] = self._with_template(raw["data"], "spec", "template")
        elif kind == "CronJob":
            slim = self._with_template(slim, "spec", "jobTemplate", "spec", "template")
            if template := object_at(slim, "spec", "jobTemplate"):
                template = self._with_metadata(template, is_template=True)
                slim["spec"] = {**slim["spec"], "jobTemplate": template}
        else:
            slim = self._with_template(slim, "spec", "template")
        return slim

    def _pod(self, pod: Raw) -> Raw:
        if self._keeps_env:
            return pod
        slim = dict(pod)
        if isinstance(pod.get("spec"), dict):
            slim["spec"] = self._pod_spec(pod["spec"], is_template=False)
        if isinstance(pod.get("status"), dict):
            slim["status"] = status = dict(pod["status"])
            for name in _STATUSES:
                if isinstance(status.get(name), list):
                    status[name] = [_without_message(container) for container in objects_at(status, name)]
        return slim

    def _with_template(self, value: Raw, *path: str) -> Raw:
        """Return the object with a reduced pod template at the path, if there is one."""
        name, *rest = path
        within = value.get(name)
        if not isinstance(within, dict):
            return value
        return {**value, name: self._with_template(within, *rest) if rest else self._template(within)}

    def _template(self, template: Raw) -> Raw:
        slim = self._with_metadata(template, is_template=True)
        if not self._keeps_env and isinstance(template.get("spec"), dict):
            slim["spec"] = self._pod_spec(template["spec"], is_template=True)
        return slim

    def _with_metadata(self, value: Raw, *, is_template: bool) -> Raw:
        metadata = value.get("metadata")
        slim = dict(value)
        if isinstance(metadata, dict):
            slim["metadata"] = self._metadata(metadata, is_template=is_template)
        return slim

    def _metadata(self, metadata: Raw, *, is_template: bool) -> Raw:
        slim = dict(metadata)
        if not self._keeps_managed_fields:
            slim.pop("managedFields", None)
        annotations = metadata.get("annotations")
        if self._keeps_annotations or not isinstance(annotations, dict):
            return slim
        kept = {name: value for name, value in annotations.items() if is_read(name)}
        others = {name: value for name, value in annotations.items() if name not in kept}
        if others and is_template:
            kept[LEFT_OUT_ANNOTATION] = self._number(others)
        slim.pop("annotations")
        return {**slim, "annotations": kept} if kept else slim

    def _pod_spec(self, spec: Raw, *, is_template: bool) -> Raw:
        slim = dict(spec)
        for name in _CONTAINERS:
            if isinstance(spec.get(name), list):
                slim[name] = [
                    self._container(container, is_template=is_template) for container in objects_at(spec, name)
                ]
        return slim

    def _container(self, container: Raw, *, is_template: bool) -> Raw:
        settings = {name: container[name] for name in _CONTAINER_SETTINGS if name in container}
        if not settings:
            return container
        slim = {name: value for name, value in container.items() if name not in settings}
        if is_template:
            slim["env"] = [{"name": LEFT_OUT_VARIABLE, "value": self._number(settings)}]
        return slim

    def _number(self, left_out: Raw) -> str:
        text = msgspec.json.encode(left_out, order="deterministic")
        digest = blake2b(text, digest_size=16).digest()
        return str(self._numbers.setdefault(digest, len(self._numbers) + 1))


def is_read(annotation: str) -> bool:
    """Return whether Podium reads an annotation."""
    return annotation in _READ or (annotation.startswith(_OWN) and annotation != LEFT_OUT_ANNOTATION)


def left_out_beside(kept: Collection[Part]) -> tuple[str, ...]:
    """Return the omitted parts in words."""
    return tuple(words for part, words in PARTS.items() if part not in kept)


def _without_message(container: Raw) -> Raw:
    """Return a container's status without its termination messages, which may hold anything."""
    for name in _ENDED:
        ended = container[name].get("terminated") if isinstance(container.get(name), dict) else None
        if isinstance(ended, dict) and "message" in ended:
            ended = {key: value for key, value in ended.items() if key != "message"}
            container = {**container, name: {**container[name], "terminated": ended}}
    return container
