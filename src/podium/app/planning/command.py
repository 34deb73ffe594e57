"""`podium plan`: what a change, an outage or a drain would do to a cluster, played out; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.command import Command, Group
from podium.app.console.options import HTML, Duration, output_option_of, validate_option
from podium.app.console.run_options import single_run_options
from podium.app.console.source import Source, optional_source_options, override_option
from podium.app.planning.decision_commands import fit, pending, survive
from podium.app.planning.options import Codes, change_options, joined, node_arguments, outcomes_options

if TYPE_CHECKING:
    from podium.api.input.codec import Document, Input
    from podium.api.warnings import Validation
    from podium.app.planning.answer import PlanAnswer
    from podium.app.planning.question import Played, Question
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
@override_option
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
    stories: int = 0

    def read(self) -> Input:
        """The cluster, read in front of somebody."""
        from podium.app.console.reading import read_shown

        return read_shown(self.source.needed(), self.validation)

    def read_change(self, files: Sequence[str]) -> list[Document]:
        """The objects of the change. Raises UsageError where no file is named."""
        from podium.api.input.codec import load_files

        if not files:
            raise click.UsageError("No change is named: give its files with -f.")
        return load_files(list(files), self.validation)

    def read_setting(self, files: Sequence[str]) -> list[Document]:
        """What one side of a comparison says."""
        from podium.api.input.codec import load_files

        return load_files(list(files), self.validation) if files else []

    def play(self, read: Input, question: Question) -> Played:
        """Play a question in front of somebody."""
        from podium.app.console.progress import ProgressBar
        from podium.app.planning.question import play_question
        from podium.app.planning.showing import save_scenario

        with ProgressBar("playing the plan") as bar:
            progress = lambda share, what: bar.update(share, lambda: what)  # noqa: E731 - as short as it is said
            played = play_question(read, question, self.options, progress, stories=self.stories)
        if self.save:
            save_scenario(self.save, played, self.options)
        return played

    def show(self, answer: PlanAnswer) -> None:
        """Print the answer, and end with 2 for what it is not to find."""
        from podium.app.planning.showing import show_answer

        if self.save and answer.scenario is None:
            raise click.UsageError(f"--save: {answer.question} has played nothing here.")
        show_answer(answer, self.form, self.shown)
        if any(code in self.fail_on for code in answer.codes):
            click.get_current_context().exit(2)


_OPTIONS = (
    validate_option,
    output_option_of(
        ("text", "json", "yaml", "csv", HTML),
        "How the answer is printed; csv is the impact by workload, html a picture of both runs.",
    ),
    click.option("--save", metavar="FILE", default="", help="Keep what is played in a file for podium simulate -f."),
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
# By the option that asks for it, what is shown after the first screen; questions name their nodes with `nodes`.
_SHOWN = {"timeline": "timeline", "pods": "pods", "all_nodes": "nodes"}


def question_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options of every question; the command gets them as `asking`, and its source joined with the group's."""

    @wraps(command)
    @click.pass_obj
    def with_asking(
        group: Source | None,
        /,
        *,
        source: Source,
        validation: Validation | None,
        options: RunOptions,
        form: str,
        save: str,
        fail_on: tuple[str, ...],
        outcomes: bool,
        stories: int,
        **given: Any,
    ) -> Answer:
        shown = tuple(part for option, part in _SHOWN.items() if given.pop(option))
        asking = Asking(
            joined(group or Source(), source),
            validation,
            options,
            form,
            save,
            fail_on,
            shown,
            stories if outcomes else 0,
        )
        return command(asking=asking, **given)

    decorated: Callable[..., Answer] = override_option(single_run_options(outcomes_options(with_asking)))
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


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


@plan.command(cls=Command)
@node_arguments
@optional_source_options
@click.option("--for", "for_ns", type=Duration(), help="Let them come back after so long; otherwise they stay down.")
@question_options
def fail(*, asking: Asking, nodes: Sequence[str], selector: str, for_ns: int | None) -> None:
    """Let nodes fail at once: who loses pods, who gets them back and when, and who does not.

    A zone fails with -l topology.kubernetes.io/zone=b. Their machines stop without a word; that pods are lost is found
    out as in a cluster, by heartbeats that do not come and the taint that follows.
    """
    from podium.app.planning.nodes import chosen_nodes
    from podium.app.planning.questions.fail import fail_answer, fail_question

    read = asking.read()
    chosen = chosen_nodes(read, nodes, selector)
    asking.show(fail_answer(asking.play(read, fail_question(chosen, for_ns)), chosen))


@plan.command(cls=Command)
@change_options("Manifests of what is deployed: Pods, Deployments, Jobs, and what they need.")
@question_options
def deploy(*, asking: Asking, change: tuple[str, ...]) -> None:
    """Deploy something: where each pod goes, whom it preempts, where those go, whom they preempt in turn, to the end.

    The files are what is deployed; the cluster is named before the word deploy, or with --cluster or --context.
    """
    from podium.app.planning.questions.deploy import deploy_answer, deploy_question, deployed

    objects = asking.read_change(change)
    question = deploy_question(objects)
    asking.show(deploy_answer(asking.play(asking.read(), question), deployed(objects)))


@plan.command("set", cls=Command)
@click.argument("target", metavar="KIND/NAME")
@click.argument("assignments", nargs=-1, metavar="FIELD=VALUE...")
@click.option("-n", "--namespace", default="", help="The namespace of the object; it may also stand before its name.")
@optional_source_options
@question_options
def set_fields(*, asking: Asking, target: str, assignments: Sequence[str], namespace: str) -> None:
    """Change fields of an object: replicas=5, priorityClassName=high, requests.cpu=2, minAvailable=3, value=1000.

    A field is one of the object, of its spec, of its pods, or (requests, limits) of their container, with dots between
    the names; of several containers the one is named first, as in main:requests.cpu=2. FIELD- takes a field away.
    """
    from podium.app.planning.questions.change import change_answer, change_question, changes_set

    read = asking.read()
    changes = changes_set(read, target, assignments, namespace)
    asking.show(change_answer(asking.play(read, change_question("set", changes)), changes))


@plan.command(cls=Command)
@change_options("Strategic merge patches, each with the kind and name of its object.")
@question_options
def patch(*, asking: Asking, change: tuple[str, ...]) -> None:
    """Patch objects of any kind, classes and budgets included: any field of them.

    A file holds what changes, with apiVersion, kind and name. What it does not say stays. The cluster is named before
    the word patch, or with --cluster or --context.
    """
    from podium.app.planning.patches import read_patches
    from podium.app.planning.questions.change import change_answer, change_question, changes_patched

    if not change:
        raise click.UsageError("No change is named: give its files with -f.")
    patches = read_patches(change)
    read = asking.read()
    changes = changes_patched(read, patches)
    asking.show(change_answer(asking.play(read, change_question("patch", changes)), changes))


@plan.command(cls=Command)
@click.option("--add", type=click.IntRange(min=1, max=10_000), metavar="N", help="How many nodes come, of each kind.")
@click.option("--like", metavar="NODE", default="", help="A node of the cluster that they are like.")
@click.option("--remove", multiple=True, metavar="NODE", help="A node that is drained and goes. May be repeated.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="The nodes with these labels go.")
@change_options("Nodes that come.")
@question_options
def nodes(
    *, asking: Asking, change: tuple[str, ...], add: int | None, like: str, remove: Sequence[str], selector: str
) -> None:
    """Add nodes, remove nodes, or both: who finds a place then, and who loses one.

    Nodes that go are drained first, one after another, pods that nobody makes again included, within their budgets.
    """
    from podium.app.planning.nodes import chosen_nodes
    from podium.app.planning.questions.nodes import NodeChange, nodes_answer, nodes_from, nodes_like, nodes_question

    if add is not None and not like and not change:
        raise click.UsageError("--add: say which with --like NODE, or with -f FILE.")
    if like and add is None:
        raise click.UsageError("--like: say how many with --add N.")
    files = asking.read_change(change) if change else []
    read = asking.read()
    added = nodes_like(read, chosen_nodes(read, [like])[0], add or 1) if like else []
    added += nodes_from(read, files, add or 1)
    removed = chosen_nodes(read, remove, selector) if remove or selector else []
    wanted = NodeChange(tuple(added), tuple(removed))
    asking.show(nodes_answer(asking.play(read, nodes_question(wanted)), wanted))


@plan.command(cls=Command)
@optional_source_options
@click.option(
    "--rescheduler",
    "rescheduler_file",
    metavar="FILE",
    default="",
    help="A ReschedulerConfiguration, or a DeschedulerPolicy; without it, a cautious one.",
)
@question_options
def reschedule(*, asking: Asking, rescheduler_file: str) -> None:
    """Put the cluster in order: which pods a rescheduler would move where and why, and what that does to workloads."""
    from podium.app.console.progress import ProgressBar
    from podium.app.planning.questions.reschedule import report_of, reschedule_answer, reschedule_question
    from podium.framework.rescheduling.configuration import default_rescheduler, load_rescheduler

    rescheduler = load_rescheduler(rescheduler_file) if rescheduler_file else default_rescheduler()
    read = asking.read()
    with ProgressBar("planning"):
        report = report_of(read, rescheduler, asking.options)
    played = asking.play(read, reschedule_question(report)) if report.moves else None
    asking.show(reschedule_answer(report, played))


@plan.command(cls=Command)
@optional_source_options
@click.option(
    "--before", "before_files", metavar="FILE", multiple=True, help="The first setting; without it, what was read."
)
@click.option("--after", "after_files", metavar="FILE", multiple=True, help="The second setting. May be repeated.")
@click.option(
    "--renew-priorities", "renews_priorities", is_flag=True, help="Give pods the priority that their class has then."
)
@question_options
def diff(*, asking: Asking, before_files: Sequence[str], after_files: Sequence[str], renews_priorities: bool) -> None:
    """Compare two settings over one cluster: which workloads gain, lose or move.

    A setting is files: objects such as priority classes, budgets and policies, which take the place of those that were
    read; a KubeSchedulerConfiguration; a ReschedulerConfiguration; a Scenario, for its autoscaler and all else in its
    spec. Both are played for as long, with the same seed.
    """
    from podium.app.console.progress import ProgressBar
    from podium.app.planning.questions.diff import diff_answer, play_diff
    from podium.app.planning.settings import read_setting
    from podium.app.planning.showing import save_scenario

    if not after_files:
        raise click.UsageError("No setting is named: give its files with --after.")
    before = read_setting(_setting_name(before_files), asking.read_setting(before_files))
    after = read_setting(_setting_name(after_files), asking.read_setting(after_files))
    read = asking.read()
    with ProgressBar("preparing") as bar:
        played = play_diff(
            read,
            before,
            after,
            asking.options,
            renews_priorities=renews_priorities,
            progress=lambda share, what: bar.update(share, lambda: what),
            stories=asking.stories,
        )
    if asking.save:
        save_scenario(asking.save, played, after.options(asking.options))
    asking.show(diff_answer(played, before, after))


def _setting_name(files: Sequence[str]) -> str:
    """What a side is called: its files without their folders."""
    return " and ".join(file.rstrip("/").rpartition("/")[2] for file in files) or "the cluster as it is"


for _command in (pending, fit, survive):
    plan.add_command(_command)
