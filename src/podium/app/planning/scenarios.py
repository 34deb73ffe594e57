"""The scenarios of plans as documents: their steps, nodes and objects, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from podium.api import selectors, times, workloads
from podium.api.errors import InputError, escape, node_hint, nodes_named, os_error_as
from podium.api.input.codec import Document, Input
from podium.api.input.documents import API_VERSION
from podium.api.meta import Kubernetes, Raw
from podium.app.console.output import in_yaml
from podium.sim.run_options import DURATIONS, RunOptions

if TYPE_CHECKING:
    from podium.app.planning.answer import PlanAnswer

SCENARIO = "Scenario"
_MAX_COMMENT = 1_000
_MAX_NAMES = 3


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
        raise InputError(f"--save {file}: {answer.question} has played nothing here")
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
