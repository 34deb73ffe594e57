"""`podium plan`: what a change, an outage or a drain would do to a cluster, played out; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import click

from podium.app.console.command import Command, Group
from podium.app.console.options import Duration
from podium.app.console.source import Source, optional_source_options, override_option
from podium.app.planning.asking import Playing, playing_options
from podium.app.planning.bounds import MOST_ADDED
from podium.app.planning.decision_commands import fit, pending, survive
from podium.app.planning.options import change_options, node_arguments

_EPILOG = """
\b
Examples: what would happen if a node were drained, a zone went down, something were deployed
  podium plan drain node-3 -f cluster.json
  podium plan fail -l topology.kubernetes.io/zone=b -f cluster.json
  podium plan -f cluster.json deploy -f new.yaml

Exit codes: 0 answered, 1 something is wrong with the input, 2 something was found that --fail-on names.
"""
_NO_CHANGE = "No change is named: give its files with -f."


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


@plan.command(cls=Command)
@node_arguments
@optional_source_options
@click.option("--parallel", is_flag=True, help="Drain the nodes at once; otherwise one after another.")
@click.option("--timeout", type=Duration(), help="Give each drain up after so long; otherwise it waits for ever.")
@click.option("--grace-period", type=click.IntRange(min=0), metavar="SECONDS", help="Instead of the pods' own.")
@click.option("--force", is_flag=True, help="Evict pods, too, that nobody makes again.")
@click.option("--delete-emptydir-data", is_flag=True, help="Evict pods, too, whose emptyDir volumes go with them.")
@click.option("--disable-eviction", is_flag=True, help="Delete the pods past their disruption budgets.")
@playing_options
def drain(
    *,
    asking: Playing,
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
    asking.show(drain_answer(asking.play(read, drain_question(chosen, wishes)), chosen, "" if nodes else selector))


@plan.command(cls=Command)
@node_arguments
@optional_source_options
@click.option("--for", "for_ns", type=Duration(), help="Let them come back after so long; otherwise they stay down.")
@playing_options
def fail(*, asking: Playing, nodes: Sequence[str], selector: str, for_ns: int | None) -> None:
    """Let nodes fail at once: who loses pods, who gets them back and when, and who does not.

    A zone fails with -l topology.kubernetes.io/zone=b. Their machines stop without a word; that pods are lost is found
    out as in a cluster, by heartbeats that do not come and the taint that follows.
    """
    from podium.app.planning.nodes import chosen_nodes
    from podium.app.planning.questions.fail import fail_answer, fail_question

    read = asking.read()
    chosen = chosen_nodes(read, nodes, selector)
    asking.show(fail_answer(asking.play(read, fail_question(chosen, for_ns)), chosen, "" if nodes else selector))


@plan.command(cls=Command)
@change_options("Manifests of what is deployed: Pods, Deployments, Jobs, and what they need.")
@playing_options
def deploy(*, asking: Playing, change: tuple[str, ...]) -> None:
    """Deploy something: where each pod goes, whom it preempts, where those go, whom they preempt in turn, to the end.

    The files are what is deployed; the cluster is named before the word deploy, or with --cluster or --context.
    """
    from podium.app.planning.questions.deploy import deploy_answer, deploy_question, deployed

    objects = asking.read_files(change, _NO_CHANGE)
    question = deploy_question(objects)
    asking.show(deploy_answer(asking.play(asking.read(), question), deployed(objects)))


@plan.command("set", cls=Command)
@click.argument("target", metavar="KIND/NAME")
@click.argument("assignments", nargs=-1, metavar="FIELD=VALUE...")
@click.option("-n", "--namespace", default="", help="The namespace of the object; it may also stand before its name.")
@optional_source_options
@playing_options
def set_fields(*, asking: Playing, target: str, assignments: Sequence[str], namespace: str) -> None:
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
@playing_options
def patch(*, asking: Playing, change: tuple[str, ...]) -> None:
    """Patch objects of any kind, classes and budgets included: any field of them.

    A file holds what changes, with apiVersion, kind and name. What it does not say stays. The cluster is named before
    the word patch, or with --cluster or --context.
    """
    from podium.app.planning.patches import read_patches
    from podium.app.planning.questions.change import change_answer, change_question, changes_patched

    if not change:
        raise click.UsageError(_NO_CHANGE)
    patches = read_patches(change)
    read = asking.read()
    changes = changes_patched(read, patches)
    asking.show(change_answer(asking.play(read, change_question("patch", changes)), changes))


@plan.command(cls=Command)
@click.option(
    "--add", type=click.IntRange(min=1, max=MOST_ADDED), metavar="N", help="How many nodes come, of each kind."
)
@click.option("--like", metavar="NODE", default="", help="A node of the cluster that they are like.")
@click.option("--remove", multiple=True, metavar="NODE", help="A node that is drained and goes. May be repeated.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="The nodes with these labels go.")
@change_options("Nodes that come.")
@playing_options
def nodes(
    *, asking: Playing, change: tuple[str, ...], add: int | None, like: str, remove: Sequence[str], selector: str
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
    files = asking.read_files(change)
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
@playing_options
def reschedule(*, asking: Playing, rescheduler_file: str) -> None:
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
@playing_options
def diff(*, asking: Playing, before_files: Sequence[str], after_files: Sequence[str], renews_priorities: bool) -> None:
    """Compare two settings over one cluster: which workloads gain, lose or move.

    A setting is files: objects such as priority classes, budgets and policies, which take the place of those that were
    read; a KubeSchedulerConfiguration; a ReschedulerConfiguration; a Scenario, for its autoscaler and all else in its
    spec. Both are played for as long, with the same seed.
    """
    from podium.app.console.progress import ProgressBar
    from podium.app.planning.questions.diff import diff_answer, play_diff
    from podium.app.planning.settings import read_setting

    if not after_files:
        raise click.UsageError("No setting is named: give its files with --after.")
    before = read_setting(_setting_name(before_files), asking.read_files(before_files))
    after = read_setting(_setting_name(after_files), asking.read_files(after_files))
    read = asking.read()
    with ProgressBar("preparing") as bar:
        played = play_diff(
            read,
            before,
            after,
            asking.options,
            renews_priorities=renews_priorities,
            stories=asking.stories,
            progress=lambda share, what: bar.update(share, lambda: what),
        )
    asking.save_played(played, after.options(asking.options))
    asking.show(diff_answer(played, before, after))


def _setting_name(files: Sequence[str]) -> str:
    """What a side is called: its files without their folders."""
    return " and ".join(file.rstrip("/").rpartition("/")[2] for file in files) or "the cluster as it is"


for _command in (pending, fit, survive):
    plan.add_command(_command)
