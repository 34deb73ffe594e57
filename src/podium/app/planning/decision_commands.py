"""The questions of `podium plan` that play nothing: decisions about the cluster as it is, and as it might be."""

from __future__ import annotations

import click

from podium.app.console.command import Command
from podium.app.console.source import optional_source_options
from podium.app.planning.asking import Deciding, deciding_options
from podium.app.planning.bounds import MOST_PLACED
from podium.app.planning.options import change_options


@click.command(cls=Command)
@optional_source_options
@click.option("-n", "--namespace", default="", help="The pods of this namespace; the others are decided about, too.")
@deciding_options
def pending(*, asking: Deciding, namespace: str) -> None:
    """Say why pods wait for a node, each cause once, and which one change would let most of them in.

    All pods without a node are decided about, one after the other, as their schedulers would do now. Who gets no node
    is grouped by what stands in the way. Then single changes are tried, each by deciding again: one more node like each
    of those that there are, a taint or a label, a smaller request, a claim, a higher priority.
    """
    from podium.app.planning.questions.pending import pending_answer

    asking.refuse_without(("pods",), "pending")
    loaded = asking.load()
    with asking.watched("deciding") as progress:
        answer = pending_answer(
            loaded, namespace, lambda share: progress(share, "trying changes"), stories=asking.stories
        )
    asking.save_decided(loaded, answer)
    asking.show(answer)


@click.command(cls=Command)
@change_options("The pod, or what makes it, and what it needs, such as its priority class.")
@click.option(
    "--replicas",
    type=click.IntRange(min=1, max=MOST_PLACED),
    metavar="N",
    help="So many of them, placed one after another; without it, as many as fit.",
)
@click.option("--preempt", "preempts", is_flag=True, help="Let them preempt pods of lower priority.")
@click.option("--after-pending", "after_pending", is_flag=True, help="Let the pods that are pending take room first.")
@deciding_options
def fit(
    *, asking: Deciding, change: tuple[str, ...], replicas: int | None, preempts: bool, after_pending: bool
) -> None:
    """Say how many pods such as this one fit, where, and what ends it, by the shape of nodes.

    The file has one pod, or one workload whose pods are meant. The cluster is named before the word fit, or with
    --cluster or --context.
    """
    from podium.app.planning.questions.fit import asked_for, fit_answer
    from podium.app.planning.questions.fit_scenario import FitWishes

    asking.refuse_without(("nodes",), "fit")
    if asking.stories and replicas is None:
        raise click.UsageError("--outcomes: say how many with --replicas N; those that fit are counted, not placed.")
    asked, others = asked_for(asking.read_files(change, "No pod is named: give its file with -f."))
    loaded = asking.load().with_(*others)
    with asking.watched("deciding"):
        answer = fit_answer(loaded, asked, FitWishes(replicas, preempts, after_pending, asking.stories))
    asking.save_decided(loaded, answer)
    asking.show(answer)


@click.command(cls=Command)
@click.argument("target")
@optional_source_options
@click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    help="The namespace of a TARGET given without one.",
)
@deciding_options
def survive(*, asking: Deciding, target: str, namespace: str) -> None:
    """Say whether TARGET survives: who could preempt it now, and what would spare it.

    TARGET is a pod that has a node, a name or namespace/name, or a workload such as deploy/web, whose pods are meant.
    All that is pending is decided about in the order of the queue, pods that come in the place of those preempted
    included. Where TARGET has to go, the smallest change of its priority, policy, budget or requests, of those who take
    it, or of the nodes is looked for that spares it, each by deciding again.
    """
    from podium.app.planning.questions.survive import survive_answer

    asking.refuse_without(("pods",), "survive")
    loaded = asking.load()
    with asking.watched("deciding"):
        answer = survive_answer(loaded, target, namespace, stories=asking.stories)
    asking.save_decided(loaded, answer)
    asking.show(answer)
