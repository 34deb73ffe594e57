"""`podium plan`: what a change, an outage or a drain would do to a cluster; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from podium.api.errors import InputError, shown
from podium.app.console.command import Group, option
from podium.app.console.options import Duration, Source, namespace_option, output_option, source_options
from podium.app.planning.constants import MAX_ADDED_NODES, MAX_PLACED_PODS
from podium.app.planning.options import (
    CHECKED,
    Check,
    DecisionInputs,
    QuestionCommand,
    RunInputs,
    deciding_options,
    manifest_arguments,
    node_arguments,
    playing_options,
)
from podium.app.using import completion

_EPILOG = """
\b
Examples: what would happen if a node were drained, a zone went down, something were deployed
  podium plan drain node-3 -f cluster.json
  podium plan fail -l topology.kubernetes.io/zone=b -f cluster.json
  podium plan deploy new.yaml -f cluster.json

Exit codes: 0 answered, 1 an error in the input or the options, 2 a finding that --fail-on names.
"""


@click.group(cls=Group, epilog=_EPILOG)
def plan() -> None:
    """Predict what a change, an outage or a drain would do to each workload; nothing is changed anywhere.

    The cluster comes from files with -f, a snapshot or a context. The change is played in virtual time, and so is the
    cluster without it; the answer is the difference.
    """


@plan.command(cls=QuestionCommand)
@option(
    "-n --namespace",
    "Answer only for pods of this namespace; Podium still decides on all.",
    default="",
    shell_complete=completion.namespaces,
)
@deciding_options("pods")
def pending(*, inputs: DecisionInputs, namespace: str) -> None:
    """Explain why pods wait for a node, each cause once, and which one change would place most of them.

    All pods without a node are decided about, one after the other, as their schedulers would do now. Those that get no
    node are grouped by their obstacles. Then single changes are tried, each by deciding again: one more node like each
    existing one, a taint or a label, a smaller request, a claim, a higher priority.
    """
    from podium.app.planning.questions.pending import pending_answer

    loaded = inputs.load()
    inputs.show("deciding", lambda progress: pending_answer(loaded, namespace, progress, samples=inputs.samples))


@plan.command(cls=QuestionCommand)
@manifest_arguments()
@option(
    "--replicas",
    "Place this many, one after another; the default is as many as fit.",
    type=click.IntRange(min=1, max=MAX_PLACED_PODS),
    metavar="N",
)
@option("--preempt preempts", "Let the pods preempt others of lower priority.", is_flag=True)
@option("--after-pending", "Place the pending pods first.", is_flag=True)
@deciding_options("nodes")
def fit(*, inputs: DecisionInputs, manifests: tuple[str, ...], **options: Any) -> None:
    """Count how many pods like this one fit, where, and what limits their number, by the shape of nodes.

    FILE has one pod or one workload, and what it needs, such as its priority class. -f names the cluster.
    """
    from podium.app.planning.questions.fit import FitOptions, fit_answer, fit_target

    if inputs.samples and options["replicas"] is None:
        raise click.UsageError("--outcomes: give a number with --replicas N; pods that fit are counted, not placed.")
    target, others = fit_target(inputs.documents(manifests))
    loaded = inputs.load().with_(*others) if others else inputs.load()
    inputs.show("deciding", lambda _: fit_answer(loaded, target, FitOptions(**options, samples=inputs.samples)))


@plan.command(cls=QuestionCommand)
@click.argument("target", shell_complete=completion.targets)
@namespace_option
@deciding_options("pods")
def survive(*, inputs: DecisionInputs, target: str, namespace: str) -> None:
    """Explain whether TARGET survives: which pods could preempt it now, and what would protect it.

    TARGET is a pod that has a node, a name or namespace/name, or a workload such as deploy/web. All pending pods are
    decided about in queue order, including the replacements of preempted pods. If TARGET is preempted, the smallest
    changes that protect it are searched, each by deciding again: of its priority, policy, budget or requests, of the
    preemptors, or of the nodes.
    """
    from podium.app.planning.questions.survive import survive_answer

    loaded = inputs.load()
    inputs.show("deciding", lambda _: survive_answer(loaded, target, namespace, samples=inputs.samples))


@plan.command(cls=QuestionCommand)
@node_arguments
@option("--parallel", "Drain the nodes at once; otherwise one after another.", is_flag=True)
@option("--timeout timeout_ns", "Give up each drain after this time; the default is never.", type=Duration())
@option("--grace-period grace_seconds", "The grace period of all pods.", type=click.IntRange(min=0), metavar="SECONDS")
@option("--force", "Also evict pods without a controller.", is_flag=True)
@option("--delete-emptydir-data", "Also evict pods with emptyDir volumes, whose data is lost.", is_flag=True)
@option("--disable-eviction", "Delete the pods past their disruption budgets.", is_flag=True)
@playing_options
def drain(*, inputs: RunInputs, nodes: Sequence[str], selector: str, **options: Any) -> None:
    """Drain nodes: how long that takes, which budget holds which pods, what blocks it and how to unblock that.

    As with `kubectl drain --ignore-daemonsets`, the nodes are cordoned, then drained one after another.
    """
    from podium.app.planning.questions.nodes import PlannedDrain, drain

    inputs.answer(drain, nodes, selector, PlannedDrain(**options))


@plan.command(cls=QuestionCommand)
@node_arguments
@option("--for for_ns", "Let the nodes come back after this time; the default is never.", type=Duration())
@playing_options
def fail(*, inputs: RunInputs, nodes: Sequence[str], selector: str, for_ns: int | None) -> None:
    """Let nodes fail at once: which workloads lose pods, which get them back and when, and which do not.

    A zone fails with -l topology.kubernetes.io/zone=b. The failure is noticed as in a cluster: by missing heartbeats
    and the taint that follows.
    """
    from podium.app.planning.questions.nodes import fail

    inputs.answer(fail, nodes, selector, for_ns)


@plan.command(cls=QuestionCommand)
@manifest_arguments()
@playing_options
def deploy(*, inputs: RunInputs, manifests: tuple[str, ...]) -> None:
    """Deploy something: where each pod goes, which pods it preempts, where those go, and which they preempt in turn.

    FILE has the manifests to deploy: Pods, Deployments, Jobs, and what they need. -f names the cluster.
    """
    from podium.app.planning.questions.deploy import deploy

    inputs.answer(deploy, inputs.documents(manifests))


@plan.command(cls=QuestionCommand)
@click.argument("target", metavar="[KIND/NAME]", default="", shell_complete=completion.targets)
@click.argument("assignments", nargs=-1, metavar="[FIELD=VALUE]...")
@option("-p --patch", "A strategic merge patch of the object, in JSON or YAML.", default="")
@option(
    "--patch-file patch_files",
    "A file of such patches, each with kind and metadata.name of its object. May be repeated.",
    metavar="FILE",
    multiple=True,
)
@option(
    "-n --namespace",
    "The object's namespace; it may also precede its name.",
    default="",
    shell_complete=completion.namespaces,
)
@playing_options
def change(
    *,
    inputs: RunInputs,
    target: str,
    assignments: Sequence[str],
    patch_files: tuple[str, ...],
    namespace: str,
    patch: str = "",
) -> None:
    """Change objects of any kind: fields such as replicas=5 and requests.cpu=2, or patches.

    A field is one of the object, of its spec, of its pods, or (requests, limits) of their container, with dots between
    the names: priorityClassName=high, minAvailable=3. Of several containers the one is named first, as in
    main:requests.cpu=2. FIELD- removes a field. Patches may change any field.
    """
    from podium.api.input.codec import objects_in
    from podium.app.planning.questions.change import change

    own = objects_in(patch.encode(), "--patch") if patch else []
    inputs.answer(change, target, assignments, [*own, *inputs.patches(patch_files)], namespace)


@plan.command(cls=QuestionCommand)
@option(
    "--add",
    "The number of nodes to add of each kind; the default is 1.",
    type=click.IntRange(min=1, max=MAX_ADDED_NODES),
    metavar="N",
)
@option("--like", "The node of the cluster to copy.", metavar="NODE", default="", shell_complete=completion.nodes)
@option(
    "--remove",
    "A node to drain and remove. May be repeated.",
    multiple=True,
    metavar="NODE",
    shell_complete=completion.nodes,
)
@option("-l --selector", "Remove the nodes with these labels.", default="", metavar="LABELS")
@manifest_arguments(is_required=False)
@playing_options
def nodes(*, inputs: RunInputs, manifests: tuple[str, ...], **wanted: Any) -> None:
    """Add nodes, remove nodes, or both: which pods find a node then, and which lose one.

    FILE has nodes to add, and their CSINodes and ResourceSlices. Removed nodes are drained first, one after another,
    within budgets; pods without a controller are evicted, too.
    """
    from podium.app.planning.questions.nodes import change_nodes

    wanted["add"] = wanted["add"] or int(bool(wanted["like"]))
    inputs.answer(change_nodes, inputs.documents(manifests), **wanted)


@plan.command(cls=QuestionCommand)
@option(
    "--rescheduler rescheduler_file",
    "A ReschedulerConfiguration or a DeschedulerPolicy; the default is a cautious one.",
    metavar="FILE",
    default="",
)
@playing_options
def reschedule(*, inputs: RunInputs, rescheduler_file: str) -> None:
    """Reschedule pods: which ones a rescheduler would move where, why and when, and what that does to workloads."""
    from podium.app.planning.questions.reschedule import reschedule

    inputs.answer(reschedule, inputs.rescheduler(rescheduler_file), doing="planning")


@plan.command(cls=QuestionCommand)
@option("--before before_files", "The first setting; the default is the cluster.", metavar="FILE", multiple=True)
@option("--after after_files", "The second setting. May be repeated.", metavar="FILE", multiple=True, required=True)
@option("--renew-priorities renews_priorities", "Give pods the priority that their class then has.", is_flag=True)
@playing_options
def diff(*, inputs: RunInputs, before_files: Sequence[str], after_files: Sequence[str], **options: bool) -> None:
    """Compare two settings over one cluster: which workloads gain, lose or move.

    A setting is files: objects such as priority classes, budgets and policies, which replace those of the cluster; a
    KubeSchedulerConfiguration; a ReschedulerConfiguration; a Scenario, for its autoscaler and all else in its spec.
    Both are played for the same time, with the same seed.
    """
    from podium.app.planning.questions.diff import diff

    settings = inputs.setting("before", before_files), inputs.setting("after", after_files)
    inputs.answer(diff, *settings, doing="preparing", **options)


@plan.command(cls=QuestionCommand)
@option("--to", "The Kubernetes version of the control plane, like 1.36.", required=True, metavar="VERSION")
@playing_options
def upgrade(*, inputs: RunInputs, to: str) -> None:
    """Upgrade the control plane: which pods run, wait or go elsewhere with another Kubernetes version.

    The cluster is played with its own version (--kubernetes-version, or what the files say) and with the other one, for
    the same time, with the same seed. The answer names fields and API versions in use whose meaning changes, and what
    is new in the other version.
    """
    from podium.app.planning.questions.diff import upgrade

    inputs.answer(upgrade, to, doing="preparing")


@plan.command
@click.argument("file")
@source_options
@option(
    "--plugin plugins",
    "Load this plugin if the saved configuration names it; no other one is loaded. May be repeated.",
    metavar="MODULE:CLASS",
    multiple=True,
)
@output_option
@click.pass_context
def check(ctx: click.Context, *, file: str, source: Source, plugins: Sequence[str], form: str) -> None:
    """Check a plan that --save has written: whether cluster and answer are still the same.

    The saved question is asked again about the cluster as it is now. The answer lists the objects that were added,
    removed or changed since, and the lines of the answer that differ. Nothing in FILE is run or loaded, and FILE
    chooses neither the cluster nor a file. Exit codes: 0 the same answer, 2 another one, 1 an error.
    """
    from tempfile import TemporaryDirectory

    from podium.app.console.output import show_answer
    from podium.app.planning.saved import PlanCheck, read_plan
    from podium.framework.settings.registry import refusing_new_classes

    saved = read_plan(file)
    question = plan.commands.get(saved.question)
    if not isinstance(question, QuestionCommand):
        raise InputError(f"{shown(saved.question)} is not a question of podium plan", source=file, path=".question")
    check = ctx.meta[CHECKED] = Check(source.needed())
    try:
        with TemporaryDirectory(prefix="podium-") as folder, refusing_new_classes(frozenset(plugins)):
            words = saved.words(question, Path(folder))
            with question.make_context(saved.question, words, parent=ctx) as asked:
                question.invoke(asked)
    except click.UsageError as error:
        raise InputError(error.message, source=file, path=".arguments") from None
    if check.answer is None:
        raise AssertionError(f"{saved.question} has left no answer")
    answer = PlanCheck(file, saved, *check.answer)
    show_answer(answer, form)
    if not answer.is_same:
        ctx.exit(2)
