"""What is left out of objects that are kept in a file.

Environment, commands and hooks of containers, and annotations that Podium does not read, decide nothing, may hold
secrets, and are most of a dump. Templates of pods are compared with one another all the same: where two differ in what
is left out, so do the numbers that stand for it there, counted from 1 in the order in which they come. A number says
nothing of what it stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from podium.api.meta import Raw
from podium.app.snapshots.annotations import READ_ANNOTATIONS

Part = Literal["annotations", "env", "managed-fields", "secrets"]
"""What may be kept on demand."""

PARTS: dict[Part, str] = {
    "annotations": "annotations that Podium does not read",
    "env": "environment, commands, probes and hooks of containers",
    "managed-fields": "managed fields",
    "secrets": "secrets",
}
"""The same in words, in the order in which they are told."""

LEFT_OUT_ANNOTATION = "podium.dev/left-out"
"""The annotation of a template that stands for those left out."""

LEFT_OUT_VARIABLE = "PODIUM_LEFT_OUT"
"""The variable of a template's container that stands for all that is left out of it."""

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_TOLD_TO_CONTAINERS = (
    "args",
    "command",
    "env",
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
)
# What a container has written when it ended may hold anything.
_ENDED = ("state", "lastState")


class Slimmer:
    """Leaves parts of objects out, but for those `kept`; what it is given is not changed."""

    def __init__(self, kept: Collection[Part] = ()) -> None:
        self._keeps_annotations = "annotations" in kept
        self._keeps_env = "env" in kept
        self._keeps_managed_fields = "managed-fields" in kept
        self._numbers: dict[bytes, int] = {}

    def slim(self, raw: Raw) -> Raw:
        """The object without what is left out."""
        slim = self._with_metadata(raw, is_template=False)
        kind, spec = raw.get("kind"), raw.get("spec")
        if kind == "Pod":
            slim = self._pod(slim)
        elif kind == "Scenario" and isinstance(spec, dict):
            slim["spec"] = self._scenario(spec)
        elif kind == "ControllerRevision" and isinstance(raw.get("data"), dict):
            slim["data"] = self._with_template(raw["data"], "spec", "template")
        elif kind == "CronJob":
            slim = self._with_template(slim, "spec", "jobTemplate", "spec", "template")
            slim = self._with_job_metadata(slim)
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
            slim["status"] = _without_last_words(pod["status"])
        return slim

    def _scenario(self, spec: Raw) -> Raw:
        """The scenario with the objects of its steps without what is left out."""
        return (
            {**spec, "steps": [self._step(step) for step in _objects(spec.get("steps"))]} if "steps" in spec else spec
        )

    def _step(self, step: Raw) -> Raw:
        return {**step, "apply": [self.slim(raw) for raw in _objects(step["apply"])]} if "apply" in step else step

    def _with_template(self, value: Raw, *path: str) -> Raw:
        """The object with the template of pods at the path without what is left out; as it is where there is none."""
        name, *rest = path
        within = value.get(name)
        if not isinstance(within, dict):
            return value
        return {**value, name: self._with_template(within, *rest) if rest else self._template(within)}

    def _with_job_metadata(self, cron_job: Raw) -> Raw:
        template = cron_job.get("spec", {}).get("jobTemplate") if isinstance(cron_job.get("spec"), dict) else None
        if not isinstance(template, dict):
            return cron_job
        slim = self._with_metadata(template, is_template=True)
        return {**cron_job, "spec": {**cron_job["spec"], "jobTemplate": slim}}

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
        kept = {name: value for name, value in annotations.items() if name in READ_ANNOTATIONS}
        others = {name: value for name, value in annotations.items() if name not in kept}
        if others and is_template:
            kept[LEFT_OUT_ANNOTATION] = self._number(others)
        slim.pop("annotations")
        return {**slim, "annotations": kept} if kept else slim

    def _pod_spec(self, spec: Raw, *, is_template: bool) -> Raw:
        slim = dict(spec)
        for name in _CONTAINERS:
            if isinstance(spec.get(name), list):
                slim[name] = [self._container(container, is_template=is_template) for container in _objects(spec[name])]
        return slim

    def _container(self, container: Raw, *, is_template: bool) -> Raw:
        told = {name: container[name] for name in _TOLD_TO_CONTAINERS if name in container}
        if not told:
            return container
        slim = {name: value for name, value in container.items() if name not in told}
        if is_template:
            slim["env"] = [{"name": LEFT_OUT_VARIABLE, "value": self._number(told)}]
        return slim

    def _number(self, left_out: Raw) -> str:
        """What stands for that: the same for the same."""
        text = msgspec.json.encode(left_out, order="deterministic")
        digest = blake2b(text, digest_size=16).digest()
        return str(self._numbers.setdefault(digest, len(self._numbers) + 1))


def left_out_beside(kept: Collection[Part]) -> tuple[str, ...]:
    """What is left out where only that is kept, in words."""
    return tuple(words for part, words in PARTS.items() if part not in kept)


def _without_last_words(status: Raw) -> Raw:
    """A pod's status without what its containers have written when they ended."""
    slim = dict(status)
    for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        if isinstance(status.get(name), list):
            slim[name] = [_without_message(container) for container in _objects(status[name])]
    return slim


def _without_message(container: Raw) -> Raw:
    for name in _ENDED:
        ended = container[name].get("terminated") if isinstance(container.get(name), dict) else None
        if isinstance(ended, dict) and "message" in ended:
            ended = {key: value for key, value in ended.items() if key != "message"}
            container = {**container, name: {**container[name], "terminated": ended}}
    return container


def _objects(value: Any) -> Iterator[Raw]:
    """The objects of a list; whatever else is in it is no part of any object that Podium reads."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
