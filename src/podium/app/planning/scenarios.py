"""The scenarios of plans as documents: their steps, nodes and objects, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from podium.api import selectors, times, workloads
from podium.api.basis import MOST_NAMES, Caveat
from podium.api.errors import InputError, escape, node_hint, nodes_named, os_error_as
from podium.api.input.codec import Document, Input
from podium.api.input.documents import API_VERSION
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PriorityClass
from podium.app.console.cells import by_key, counted
from podium.app.console.output import in_yaml
from podium.sim.run_options import DURATIONS, RunOptions

if TYPE_CHECKING:
    from podium.app.planning.answer import PlanAnswer

SCENARIO = "Scenario"
_MAX_COMMENT = 1_000
_MAX_NAMES = 3
_NOT_CARRIED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class Remedy(Struct, frozen=True):
    """The change that a headline names, in words, and the manifests with it.

    They replace the objects of their kind and name, or are added, as with `--override`.
    """

    text: str
    objects: tuple[Raw, ...]


def scenario_of_spec(read: Input, name: str, settings: Raw, steps: Sequence[Raw] = ()) -> Raw:
    """Return the input's scenario, named for a plan, with its settings replaced and further steps added."""
    given = [document.raw for document in read.documents if is_scenario(document)]
    base: Raw = given[0] if given else {"apiVersion": API_VERSION, "kind": SCENARIO, "metadata": {}, "spec": {}}
    spec = base.get("spec", {})
    if not isinstance(spec, dict) or not isinstance(spec.get("steps", []), list):
        raise InputError("is not a Scenario with a list of steps", path=".spec.steps")
    return {
        **base,
        "metadata": {**base.get("metadata", {}), "name": f"plan-{name}"},
        "spec": {**spec, **settings, "steps": [*spec.get("steps", []), *steps]},
    }


def with_scenario(read: Input, scenario: Raw) -> Input:
    """Return the input with this scenario in place of its own."""
    documents = [document for document in read.documents if not is_scenario(document)]
    return Input([*documents, Document("the plan", 1, scenario, None)], read.left_out)


def is_scenario(document: Document) -> bool:
    """Return whether a document is a Scenario."""
    if document.object is not None:
        return False
    return (document.raw.get("apiVersion"), document.raw.get("kind")) == (API_VERSION, SCENARIO)


def makes_pods(item: Kubernetes) -> bool:
    """Return whether an object is a pod, or makes pods, and has no controller itself."""
    name = type(item).__name__
    return item.metadata.controller is None and (name == "Pod" or name in workloads.WORKLOADS)


def step(name: str, what: Any, at: str = "0s") -> Raw:
    """Return one step of a scenario."""
    return {"at": at, name: what}


def recreated(item: Kubernetes, raw: Raw) -> list[Raw]:
    """Return the steps that delete an object, a pod without its grace period, and create it as in ``raw``."""
    gone = {"kind": item.kind, "name": item.metadata.name}
    gone |= {"namespace": item.metadata.namespace} if item.metadata.namespace else {}
    metadata = {key: value for key, value in raw["metadata"].items() if key not in _NOT_CARRIED}
    new = {key: value for key, value in raw.items() if key != "status"} | {"metadata": metadata}
    return [step("delete", gone | ({"outright": True} if isinstance(item, Pod) else {})), step("apply", [new])]


def changed_at_start(read: Input, changed: Sequence[Document]) -> tuple[list[Document], list[Raw]]:
    """Return the changed objects that replace those of the input before anything happens, and steps for the others.

    The others are PriorityClasses, deleted and created again, whose old value pods or groups keep that were in no
    cluster: they run, or state the value, which the new class would refuse.
    """
    items = [document.object for document in read.documents]
    kept = {
        item.spec.priority_class_name
        for item in items
        if isinstance(item, Pod | PodGroup)
        and (not item.metadata.uid if item.spec.priority is not None else isinstance(item, Pod) and item.spec.node_name)
    }
    classes = [item for item in items if isinstance(item, PriorityClass) and item.metadata.name in kept]
    values = attrgetter("value", "preemption_policy")
    known = {item.metadata.name: values(item) for item in classes}
    first, steps = list[Document](), list[Raw]()
    for document in changed:
        item = document.object
        if isinstance(item, PriorityClass) and known.get(item.metadata.name, values(item)) != values(item):
            steps += recreated(item, document.raw)
        else:
            first.append(document)
    return first, steps


def kept_priorities(read: Input, changed: Sequence[Document]) -> list[Caveat]:
    """Return the caveat that pods keep their priority although their classes change, if there are such pods."""
    classes = (document.object for document in changed)
    values = by_key((item.metadata.name, item.value) for item in classes if isinstance(item, PriorityClass))
    pods = [
        pod.key
        for pod in (document.object for document in read.documents)
        if isinstance(pod, Pod)
        and (pod.spec.node_name or pod.spec.priority is not None)
        and any(value != pod.spec.priority for value in values.get(pod.spec.priority_class_name, ()))
    ]
    what = f"{counted(len(pods), 'pod', 'keeps')} the old priority although the class changes, as in a cluster"
    message = f"{what}; plan diff --renew-priorities gives the new one"
    return [Caveat("priorities-kept", message, len(pods), tuple(pods[:MOST_NAMES]))] if pods else []


def chosen_nodes(read: Input, names: Sequence[str], selector: str = "") -> list[str]:
    """Return the nodes with these names, in their order, then those with the labels, by name; each once.

    A name may be short or a pattern (`nodes_named`), and written as `node/NAME`. Raises InputError for an unknown name,
    and if no node is chosen.
    """
    nodes = read.of_kind("Node")
    found: dict[str, None] = {}
    for given in names:
        name = given.partition("/")[2] if given.partition("/")[0] in ("node", "nodes", "no") else given
        meant = nodes_named(name, nodes)
        if not meant:
            raise InputError(f"there is no node {name} among {len(nodes):,}{node_hint(name, nodes)}")
        found |= dict.fromkeys(meant)
    if selector:
        try:
            labels = selectors.parse_label_selector(selector)
        except ValueError as error:
            raise InputError(f"-l {selector}: {error}") from None
        matching = [
            name
            for name, document in sorted(nodes.items())
            if document.object is not None and labels.matches(document.object.metadata.labels)
        ]
        if not matching:
            raise InputError(f"-l {selector}: no node of {len(nodes):,} has these labels")
        found |= dict.fromkeys(matching)
    if not found:
        raise InputError("no node is named; give names, or labels with -l")
    return list(found)


def nodes_text(nodes: Sequence[str], labels: str = "") -> str:
    """Return the nodes in one line; of many only their number, and the labels that selected them, if any."""
    if len(nodes) <= _MAX_NAMES:
        return ", ".join(nodes)
    return f"{len(nodes):,} nodes" + (f" with {labels}" if labels else "")


def save_answer(file: str, answer: PlanAnswer) -> None:
    """Write the cluster and the scenario of an answer, for `podium simulate -f FILE`.

    Comments at the beginning have the command with its options, such as the seed. For a question that is decided they
    also have the headline, and a file beside it has the remedy's change. Raises InputError for an answer without a
    scenario.
    """
    read, scenario, options = answer.read, answer.scenario, answer.options
    if read is None or scenario is None or options is None:
        raise InputError(f"--save {file}: plan {answer.question} simulated nothing that could be saved")
    play = f"podium simulate -f {Path(file).name}{_options_text(options)}"
    comments = [play]
    if answer.result is not None:
        scenario = {**scenario, "spec": {"latency": times.format_duration(options.latency_ns or 0), **scenario["spec"]}}
    else:
        comments.append(f"  {answer.headline}")
    remedy, change = answer.remedy, Path(file).with_name(f"{Path(file).stem}-change{Path(file).suffix}")
    if remedy is not None:
        comments += [f"{play} --override {change.name}", f"  with {remedy.text}"]
    _write(file, comments, (document.raw for document in with_scenario(read, scenario).documents))
    if remedy is not None:
        _write(str(change), [f"{remedy.text}: see {Path(file).name}"], remedy.objects)


def _write(file: str, comments: Iterable[str], documents: Iterable[Raw]) -> None:
    with os_error_as("cannot be written", file), Path(file).open("w", encoding="utf-8") as stream:
        stream.writelines(f"# {escape(comment, _MAX_COMMENT)}\n" for comment in comments)
        for raw in documents:
            stream.write(f"---\n{in_yaml(raw)}")


def _options_text(options: RunOptions) -> str:
    """Return the options that differ from the defaults, each after a space."""
    usual = RunOptions()
    fields = {name: f"{name}_ns" for name in DURATIONS if name != "latency"}
    found = [
        f" --{name.replace('_', '-')} {times.format_duration(getattr(options, field))}"
        for name, field in fields.items()
        if getattr(options, field) != getattr(usual, field)
    ]
    if options.seed:
        found.append(f" --seed {options.seed}")
    if options.start_ns is not None:
        found.append(f" --start {times.format_exact_time(options.start_ns)}")
    if options.configuration is not None:
        found.append(f" --config {options.configuration.source}")
    if options.ignore_extenders:
        found.append(" --ignore-extenders")
    return "".join(found) + options.release.options
