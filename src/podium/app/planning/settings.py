"""One of two settings that are compared: objects, and how schedulers, rescheduler and autoscaler are configured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input
from podium.api.input.overrides import overridden
from podium.api.meta import Raw
from podium.api.objects import label_of, read_object
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PriorityClass
from podium.app.planning.question import (
    SCENARIO,
    applied,
    is_scenario,
    objects_of,
    scenario_of_spec,
    step,
    with_scenario,
)
from podium.framework.rescheduling.configuration import API_VERSION as RESCHEDULER_VERSION
from podium.framework.rescheduling.configuration import KIND as RESCHEDULER
from podium.framework.rescheduling.configuration import read_rescheduler
from podium.framework.rescheduling.descheduler.policy import KIND as DESCHEDULER
from podium.framework.settings.configuration import KIND as SCHEDULER
from podium.framework.settings.configuration import Configuration, read_configuration
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import API_VERSION

_IDENTITY = ("apiVersion", "kind", "metadata")
_CLASS = "PriorityClass"
# How what is meant is to be written.
_ADVICE = {
    DESCHEDULER: "; write it as a ReschedulerConfiguration",
    RESCHEDULER: f" unless its apiVersion is {RESCHEDULER_VERSION}",
    SCENARIO: f" unless its apiVersion is {API_VERSION}",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What the files of one side say: the `objects` take the place of those of a cluster, and of its scenario `spec`.

    `configuration` is that of the schedulers, None where the files have none.
    """

    name: str
    objects: tuple[Document, ...] = ()
    spec: Raw = field(default_factory=dict)
    configuration: Configuration | None = None

    def input(self, read: Input, *, renews_priorities: bool = False) -> Input:
        """The cluster with this setting.

        Pods that have been in a cluster keep what they have of a priority class; with ``renews_priorities`` they have
        what it says. The class is what it is to be before anybody acts. Only where pods that have been in none state
        what they have of it, which it would refuse, it is made anew at the start. Raises InputError for what cannot be
        read then.
        """
        later, steps = list(self.objects), list[Raw]()
        if not renews_priorities and _state_priorities(read, self.classes):
            classes = objects_of(read, _CLASS)
            made_anew = [document for document in later if _changes_class(document, classes)]
            later = [document for document in later if document not in made_anew]
            steps = [made for document in made_anew for made in _made_anew(document.raw)]
        documents = overridden(read.documents, later)
        found = Input(_renewed(documents) if renews_priorities else documents, read.left_out)
        if not self.spec and not steps:
            return found
        spec = dict(self.spec)
        own = spec.pop("steps", [])
        scenario = scenario_of_spec(found, "diff", spec, own)
        # What the steps of a scenario create at the start is to be of the classes as they are then.
        scenario["spec"]["steps"] = [*steps, *scenario["spec"]["steps"]]
        return with_scenario(found, scenario)

    def options(self, options: RunOptions) -> RunOptions:
        """The options of a run, with the schedulers of this setting."""
        return options if self.configuration is None else replace(options, configuration=self.configuration)

    @property
    def classes(self) -> set[str]:
        """The names of the priority classes that it has."""
        return {
            document.object.metadata.name for document in self.objects if isinstance(document.object, PriorityClass)
        }


def read_setting(name: str, documents: Sequence[Document]) -> Setting:
    """The setting in the documents of one side. Raises InputError for what is no part of one, or is there twice."""
    objects: list[Document] = []
    configuration: Configuration | None = None
    spec: Raw = {}
    for document in documents:
        raw, kind = document.raw, str(document.raw.get("kind", ""))
        if kind == SCHEDULER:
            _refuse_second(document, is_second=configuration is not None)
            configuration = read_configuration(raw, document.source)
        elif kind == RESCHEDULER and raw.get("apiVersion") == RESCHEDULER_VERSION:
            _refuse_second(document, is_second="rescheduler" in spec)
            read_rescheduler(raw, document.source)
            spec["rescheduler"] = {key: value for key, value in raw.items() if key not in _IDENTITY}
        elif is_scenario(document):
            spec |= _spec_of(document, spec)
        elif document.object is None:
            advice = _ADVICE.get(kind, "")
            problem = f"a {kind} is no setting that a run has{advice}"
            raise InputError(problem, source=document.source, document=document.index, path=".kind")
        else:
            objects.append(document)
    return Setting(name, tuple(objects), spec, configuration)


def kept_priorities(read: Input, settings: Sequence[Setting]) -> tuple[Caveat, ...]:
    """What is to be said where classes change and pods keep the priority that they have."""
    changed = set().union(*(setting.classes for setting in settings))
    pods = [
        document.object.key
        for document in read.documents
        if isinstance(document.object, Pod)
        and document.object.spec.priority is not None
        and document.object.spec.priority_class_name in changed
    ]
    if not pods:
        return ()
    what = "1 pod keeps the priority" if len(pods) == 1 else f"{len(pods):,} pods keep the priority"
    message = f"{what} of before, as in a cluster, though the classes change; --renew-priorities gives the new one"
    return (Caveat("priorities-kept", message, len(pods), tuple(pods[:20])),)


def _state_priorities(read: Input, classes: Collection[str]) -> bool:
    """Whether some pod or group of one of the classes states its priority, and has been in no cluster."""
    return any(
        isinstance(item, Pod | PodGroup)
        and not item.metadata.uid
        and item.spec.priority is not None
        and item.spec.priority_class_name in classes
        for item in (document.object for document in read.documents)
    )


def _changes_class(document: Document, classes: dict[str, Document]) -> bool:
    """Whether a document is a priority class that is there and says something else."""
    item = document.object
    before = classes.get(item.key) if isinstance(item, PriorityClass) else None
    known = None if before is None else before.object
    if not isinstance(item, PriorityClass) or not isinstance(known, PriorityClass):
        return False
    return (known.value, known.preemption_policy) != (item.value, item.preemption_policy)


def _made_anew(raw: Raw) -> list[Raw]:
    """The steps that delete a priority class and make it as it is written."""
    return [step("delete", {"kind": _CLASS, "name": raw["metadata"]["name"]}), applied([raw])]


def _spec_of(document: Document, known: Raw) -> Raw:
    spec = document.raw.get("spec", {})
    if not isinstance(spec, dict):
        raise InputError("is not an object", source=document.source, document=document.index, path=".spec")
    for name in spec:
        _refuse_second(document, is_second=name in known, path=f".spec.{name}")
    return spec


def _refuse_second(document: Document, *, is_second: bool, path: str = "") -> None:
    if is_second:
        problem = "is there twice on one side; give it once"
        raise InputError(
            problem, source=document.source, document=document.index, object=label_of(document.raw), path=path
        )


def _renewed(documents: Sequence[Document]) -> list[Document]:
    """The documents with the priority and policy of each pod's class in it, where it names one that is there.

    And so for PodGroups, which have no policy.
    """
    classes = {
        document.object.metadata.name: document.object
        for document in documents
        if isinstance(document.object, PriorityClass)
    }
    return [_with_priority(document, classes) for document in documents]


def _with_priority(document: Document, classes: dict[str, PriorityClass]) -> Document:
    item = document.object
    if not isinstance(item, Pod | PodGroup) or item.spec.priority is None:
        return document
    named = classes.get(item.spec.priority_class_name)
    if named is None or named.value == item.spec.priority:
        return document
    raw = document.raw
    spec = {**raw["spec"], "priority": named.value}
    if isinstance(item, Pod):
        spec["preemptionPolicy"] = named.preemption_policy
    read = read_object({**raw, "spec": spec}, document.validation)
    return replace(document, written=read.raw, object=read.object)
