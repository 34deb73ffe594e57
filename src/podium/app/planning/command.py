"""`podium plan`: what a change, an outage or a drain would do to a cluster, played out; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.command import Command, Group
from podium.app.console.options import (
    Duration,
    Time,
    config_option,
    feature_gates_option,
    ignore_extenders_option,
    limit_options,
    validate_option,
)
from podium.app.console.source import ClusterSource, Source, optional_source_options

if TYPE_CHECKING:
    from podium.api.input.codec import Input
    from podium.api.warnings import Validation
    from podium.app.planning.answer import PlanAnswer
    from podium.app.planning.question import Played, Question
    from podium.framework.settings.feature_gates import FeatureGates
    from podium.sim.run import RunOptions

Answer = TypeVar("Answer")

_EPILOG = """
\b
Examples: what would happen if a node were drained, a zone went down, something were deployed
  podium plan drain node-3 -f cluster.json
  podium plan fail -l topology.kubernetes.io/zone=b -f cluster.json
  podium plan -f cluster.json deploy -f new.yaml

Exit codes: 0 answered, 1 something is wrong with the input, 2 something was found that --fail-on names.
"""


@click.group(cls=Group, epilog=_EPILOG)
@optional_source_options
@click.pass_context
def plan(ctx: click.Context, source: Source) -> None:
    """Say what a change, an outage or a drain would do to each workload; nothing is changed anywhere.

    The cluster is what the files, a snapshot or a context say. What is asked is played in virtual time, and so is what
    would happen without it; the answer is the difference.
    """
    ctx.obj = source


@dataclass(frozen=True, slots=True)
class Asking:
    """What every question is asked with: where the cluster is from, how it is played, and how the answer is shown."""

    source: Source
    validation: Validation | None
    options: RunOptions
    form: str
    save: str
    fail_on: tuple[str, ...]
    shown: tuple[str, ...]

    def read(self) -> Input:
        """The cluster, read in front of somebody."""
        from podium.app.console.reading import read_shown

        return read_shown(self.source.needed(), self.validation)

    def play(self, read: Input, question: Question) -> Played:
        """Play a question in front of somebody."""
        from podium.app.console.progress import ProgressBar
        from podium.app.planning.question import play_question

        with ProgressBar() as bar:
            return play_question(read, question, self.options, lambda share, what: bar.update(share, lambda: what))

    def show(self, answer: PlanAnswer) -> None:
        """Print the answer, keep its scenario where that is wanted, and end with 2 for what it is not to find."""
        from podium.app.planning.showing import save_scenario, show_answer

        if self.save:
            save_scenario(self.save, answer, self.options)
        show_answer(answer, self.form, self.shown)
        if any(code in self.fail_on for code in answer.codes) or (self.fail_on == ("any",) and answer.codes):
            click.get_current_context().exit(2)


class Codes(click.ParamType[tuple[str, ...]]):
    """Codes of findings with commas between them, or `any`."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Read the text, or fail with what is wrong with it."""
        from podium.app.planning.answer import FINDING_CODES

        if isinstance(value, tuple):
            return value
        codes = tuple(code.strip() for code in value.split(",") if code.strip())
        if codes == ("any",):
            return codes
        for code in codes:
            if code not in FINDING_CODES:
                self.fail(f"{code!r} is no code; any, or some of {', '.join(FINDING_CODES)} with commas", param, ctx)
        return codes


_OPTIONS = (
    validate_option,
    click.option("--until", type=Duration(), help="When to stop; without it, when nothing is left to happen."),
    click.option("--start", type=Time(), help="The time of the start; without it, the newest time in the files."),
    click.option("--start-delay", type=Duration(), default=0, help="How long a bound pod takes to start."),
    click.option("--bind-delay", type=Duration(), default=0, help="How long a binding takes."),
    click.option("--termination", type=Duration(), help="How long a deleted pod takes to end; else its grace period."),
    click.option("--seed", type=int, default=0, show_default=True, help="Chooses uids, and between equal nodes."),
    config_option,
    ignore_extenders_option,
    feature_gates_option,
    limit_options,
    click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(["text", "json", "yaml", "csv", "html"]),
        default="text",
        show_default=True,
        help="How the answer is printed; csv is the impact by workload.",
    ),
    click.option("--save", metavar="FILE", default="", help="Keep the scenario that is played, with the cluster."),
    click.option(
        "--fail-on",
        type=Codes(),
        default=(),
        metavar="CODES",
        help="End with 2 where something is found of these, with commas between them: preempt, evict, unschedulable, "
        "budget, short, not-ready, blocked, timeout, refused; or any.",
    ),
    click.option("--timeline", is_flag=True, help="Show what happens when."),
    click.option("--pods", is_flag=True, help="Show each pod of the workloads with an impact."),
    click.option("--nodes", "all_nodes", is_flag=True, help="Show every node, before and at the end."),
)


def question_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options of every question; the command gets them as `asking`, and its source joined with the group's."""

    @wraps(command)
    @click.pass_obj
    def with_asking(group: Source | None, /, **given: Any) -> Answer:
        own = {name: given.pop(name) for name in _OWN}
        return command(asking=_asking(group or Source(), given.pop("source"), **own), **given)

    decorated: Callable[..., Answer] = with_asking
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OWN = (
    "validation",
    "until",
    "start",
    "start_delay",
    "bind_delay",
    "termination",
    "seed",
    "config",
    "ignore_extenders",
    "feature_gates",
    "max_objects",
    "max_events",
    "max_calls",
    "form",
    "save",
    "fail_on",
    "timeline",
    "pods",
    "all_nodes",
)


def _asking(
    group: Source,
    source: Source,
    *,
    validation: Validation | None,
    until: int | None,
    start: int | None,
    start_delay: int,
    bind_delay: int,
    termination: int | None,
    seed: int,
    config: str | None,
    ignore_extenders: bool,
    feature_gates: FeatureGates,
    max_objects: int | None,
    max_events: int | None,
    max_calls: int | None,
    form: str,
    save: str,
    fail_on: tuple[str, ...],
    timeline: bool,
    pods: bool,
    all_nodes: bool,
) -> Asking:
    from podium.framework.settings.configuration import load_configuration
    from podium.sim.limits import Limits
    from podium.sim.run import RunOptions

    options = RunOptions(
        seed=seed,
        start_ns=start,
        until_ns=until,
        start_delay_ns=start_delay,
        bind_delay_ns=bind_delay,
        termination_ns=termination,
        configuration=load_configuration(config) if config else None,
        feature_gates=feature_gates,
        limits=Limits.raised(max_objects, max_events, max_calls),
        ignore_extenders=ignore_extenders,
    )
    shown = {"timeline": timeline, "pods": pods, "nodes": all_nodes}
    return Asking(
        joined(group, source),
        validation,
        options,
        form,
        save,
        fail_on,
        tuple(name for name, is_wanted in shown.items() if is_wanted),
    )


def joined(group: Source, own: Source) -> Source:
    """The files of both, and the cluster that the question names, or else the group."""
    cluster: ClusterSource | None = own.cluster if own.cluster is not None else group.cluster
    allows = own.allows_exec_plugins or group.allows_exec_plugins
    return replace(own, files=(*group.files, *own.files), cluster=cluster, allows_exec_plugins=allows)


_nodes_arguments = (
    click.argument("nodes", nargs=-1, metavar="[NODE]..."),
    click.option(
        "-l", "--selector", default="", metavar="LABELS", help="The nodes with these labels, as kubectl has it."
    ),
)


def node_arguments(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Which nodes: names, and a label selector."""
    for option in reversed(_nodes_arguments):
        command = option(command)
    return command


@plan.command(cls=Command)
@node_arguments
@optional_source_options
@click.option("--parallel", is_flag=True, help="Drain the nodes at once; otherwise one after another.")
@click.option("--timeout", type=Duration(), help="Give each drain up after so long; otherwise it waits for ever.")
@click.option("--grace-period", type=click.IntRange(min=0), metavar="SECONDS", help="Instead of the pods' own.")
@click.option("--force", is_flag=True, help="Evict pods, too, that nobody makes again.")
@click.option("--delete-emptydir-data", is_flag=True, help="Evict pods, too, whose emptyDir volumes go with them.")
@click.option("--disable-eviction", is_flag=True, help="Delete the pods past their disruption budgets.")
@question_options
def drain(
    *,
    asking: Asking,
    nodes: Sequence[str],
    selector: str,
    parallel: bool,
    timeout: int | None,
    grace_period: int | None,
    force: bool,
    delete_emptydir_data: bool,
    disable_eviction: bool,
) -> None:
    """Drain nodes: how long it takes, which budget holds whom, what blocks it and how to unblock that.

    As `kubectl drain --ignore-daemonsets` does: the nodes are cordoned, then drained one after another.
    """
    from podium.app.planning.nodes import chosen_nodes
    from podium.app.planning.questions.drain import DrainWishes, drain_answer, drain_question

    wishes = DrainWishes(parallel, timeout, grace_period, force, delete_emptydir_data, disable_eviction)
    read = asking.read()
    chosen = chosen_nodes(read, nodes, selector)
    asking.show(drain_answer(asking.play(read, drain_question(chosen, wishes)), chosen))
