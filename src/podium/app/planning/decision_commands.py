"""The questions of `podium plan` that play nothing: decisions about the cluster as it is, and as it might be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.command import Command
from podium.app.console.options import config_option, feature_gates_option, ignore_extenders_option, validate_option
from podium.app.console.source import Source, optional_source_options, override_option
from podium.app.planning.options import Codes, change_options, joined, outcomes_options

if TYPE_CHECKING:
    from podium.api.input.codec import Document
    from podium.api.warnings import Validation
    from podium.app.cluster import Cluster as LoadedCluster
    from podium.app.planning.answer import PlanAnswer
    from podium.framework.settings.feature_gates import FeatureGates

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Deciding:
    """What such a question is asked with: where the cluster is from, who decides, and how the answer is shown."""

    source: Source
    validation: Validation | None
    config: str | None
    ignore_extenders: bool
    feature_gates: FeatureGates
    form: str
    fail_on: tuple[str, ...]
    stories: int = 0

    def load(self) -> LoadedCluster:
        """The cluster, read in front of somebody."""
        from podium.app.cluster import Cluster as LoadedCluster
        from podium.app.console.reading import read_shown
        from podium.app.decision_settings import DecisionSettings
        from podium.framework.settings.configuration import load_configuration

        read = read_shown(self.source.needed(), self.validation)
        configuration = load_configuration(self.config) if self.config else None
        return LoadedCluster(read, DecisionSettings(configuration, self.feature_gates, self.ignore_extenders))

    def read_files(self, files: Sequence[str]) -> list[Document]:
        """The objects that the question is about. Raises UsageError where no file is named."""
        from podium.api.input.codec import load_files

        if not files:
            raise click.UsageError("No pod is named: give its file with -f.")
        return load_files(list(files), self.validation)

    def show(self, answer: PlanAnswer) -> None:
        """Print the answer, and end with 2 for what it is not to find."""
        from podium.app.planning.showing import show_answer

        show_answer(answer, self.form)
        if any(code in self.fail_on for code in answer.codes):
            click.get_current_context().exit(2)


_OPTIONS = (
    validate_option,
    config_option,
    ignore_extenders_option,
    feature_gates_option,
    click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(["text", "json", "yaml", "csv", "html"]),
        default="text",
        show_default=True,
        help="How the answer is printed; csv is its main table.",
    ),
    click.option(
        "--fail-on",
        type=Codes(),
        default=(),
        metavar="CODES",
        help="End with 2 where something is found of these, with commas between them: preempt, unschedulable, refused; "
        "or any.",
    ),
)


def deciding_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options of such a question; the command gets them as `deciding`, its source joined with the group's."""

    @wraps(command)
    @click.pass_obj
    def with_deciding(
        group: Source | None,
        /,
        *,
        source: Source,
        validation: Validation | None,
        config: str | None,
        ignore_extenders: bool,
        feature_gates: FeatureGates,
        form: str,
        fail_on: tuple[str, ...],
        outcomes: bool = False,
        stories: int = 0,
        **given: Any,
    ) -> Answer:
        named = joined(group or Source(), source)
        deciding = Deciding(named, validation, config, ignore_extenders, feature_gates, form, fail_on)
        deciding = replace(deciding, stories=stories if outcomes else 0)
        return command(deciding=deciding, **given)

    decorated: Callable[..., Answer] = override_option(with_deciding)
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


@click.command(cls=Command)
@optional_source_options
@click.option("-n", "--namespace", default="", help="The pods of this namespace; the others are decided about, too.")
@outcomes_options
@deciding_options
def pending(*, deciding: Deciding, namespace: str) -> None:
    """Say why pods wait for a node, each cause once, and which one change would let most of them in.

    All pods without a node are decided about, one after the other, as their schedulers would do now. Who gets no node
    is grouped by what stands in the way. Then single changes are tried, each by deciding again: one more node like each
    of those that there are, a taint or a label, a smaller request, a claim, a higher priority.
    """
    from podium.app.console.progress import ProgressBar
    from podium.app.planning.questions.pending import pending_answer

    loaded = deciding.load()
    with ProgressBar("deciding") as bar:
        progress = lambda share: bar.update(share, lambda: "trying changes")  # noqa: E731 - as short as it is said
        answer = pending_answer(loaded, namespace, progress, stories=deciding.stories)
    deciding.show(answer)


@click.command(cls=Command)
@change_options("The pod, or what makes it, and what it needs, such as its priority class.")
@click.option(
    "--replicas",
    type=click.IntRange(min=1, max=20_000),
    metavar="N",
    help="So many of them, placed one after another; without it, as many as fit.",
)
@click.option("--preempt", "preempts", is_flag=True, help="Let them preempt pods of lower priority.")
@click.option("--after-pending", "after_pending", is_flag=True, help="Let the pods that are pending take room first.")
@outcomes_options
@deciding_options
def fit(
    *, deciding: Deciding, change: tuple[str, ...], replicas: int | None, preempts: bool, after_pending: bool
) -> None:
    """Say how many pods such as this one fit, where, and what ends it, by the shape of nodes.

    The file has one pod, or one workload whose pods are meant. The cluster is named before the word fit, or with
    --cluster or --context.
    """
    from podium.app.planning.questions.fit import asked_for, fit_answer
    from podium.app.planning.questions.fit_replicas import FitWishes

    if deciding.stories and replicas is None:
        raise click.UsageError("--outcomes: say how many with --replicas N; those that fit are counted, not placed.")
    asked, others = asked_for(deciding.read_files(change))
    loaded = deciding.load().with_(*others)
    deciding.show(fit_answer(loaded, asked, FitWishes(replicas, preempts, after_pending, deciding.stories)))


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
def survive(*, deciding: Deciding, target: str, namespace: str) -> None:
    """Say whether TARGET survives: who could preempt it now, and what would spare it.

    TARGET is a pod that has a node, a name or namespace/name, or a workload such as deploy/web, whose pods are meant.
    All that is pending is decided about in the order of the queue, pods that come in the place of those preempted
    included. Where TARGET has to go, the smallest change of its priority, policy, budget or requests, of those who take
    it, or of the nodes is looked for that spares it, each by deciding again.
    """
    from podium.app.planning.questions.survive import survive_answer

    deciding.show(survive_answer(deciding.load(), target, namespace))
