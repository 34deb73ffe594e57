"""What the questions of `podium plan` are asked with on the command line: options, the cluster, and how it is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.options import (
    HTML,
    config_option,
    feature_gates_option,
    ignore_extenders_option,
    output_option_of,
    validate_option,
)
from podium.app.console.run_options import single_run_options
from podium.app.console.source import Source, override_option
from podium.app.planning.bounds import MOST_STORIES
from podium.app.planning.finding_codes import FINDING_CODES
from podium.app.planning.options import Codes, joined

if TYPE_CHECKING:
    from podium.api.input.codec import Document, Input
    from podium.api.warnings import Validation
    from podium.app.cluster import Cluster as LoadedCluster
    from podium.app.planning.answer import PlanAnswer
    from podium.app.planning.question import Played, Question
    from podium.framework.settings.feature_gates import FeatureGates
    from podium.sim.run_options import RunOptions

Answer = TypeVar("Answer")
Asked = TypeVar("Asked")
Progress = Callable[[float, str], None]

# By the option that asks for it, what is shown after the first screen; questions name their nodes with `nodes`.
_SHOWN = {"timeline": "timeline", "pods": "pods", "all_nodes": "nodes"}


@dataclass(frozen=True, slots=True)
class Asking:
    """What every question is asked with: where the cluster is from, and how the answer is shown and kept.

    It is told so many ``stories`` to find out how chance may have it come out, 0 for just the answer.
    """

    source: Source
    validation: Validation | None
    form: str
    save: str
    fail_on: tuple[str, ...]
    shown: tuple[str, ...]
    stories: int

    def read(self) -> Input:
        """The cluster, read in front of somebody."""
        from podium.app.console.reading import read_shown

        return read_shown(self.source.needed(), self.validation)

    def read_files(self, files: Sequence[str], missing: str = "") -> list[Document]:
        """The objects that the question is about. Raises UsageError with `missing` where no file is named."""
        from podium.api.input.codec import load_files

        if not files and missing:
            raise click.UsageError(missing)
        return load_files(list(files), self.validation) if files else []

    @contextmanager
    def watched(self, what: str) -> Iterator[Progress]:
        """While something is done in front of somebody, what is to be told of it."""
        from podium.app.console.progress import ProgressBar

        with ProgressBar(what) as bar:
            yield lambda share, told: bar.update(share, lambda: told)

    def refuse_without(self, answers: Collection[str], question: str) -> None:
        """Refuse to show what the question has no more of than its first screen."""
        for part in self.shown:
            if part not in answers:
                raise click.UsageError(f"--{part}: plan {question} {_INSTEAD[part]}")

    def show(self, answer: PlanAnswer) -> None:
        """Print the answer, and end with 2 for what it is not to find."""
        from podium.app.planning.showing import show_answer

        if self.save and answer.scenario is None:
            raise click.UsageError(f"--save: {answer.question} has played nothing here.")
        show_answer(answer, self.form, self.shown)
        if any(code in self.fail_on for code in answer.codes):
            click.get_current_context().exit(2)


# What there is in place of a part that a question does not have.
_INSTEAD = {
    "timeline": "decides about one moment and plays nothing; --save FILE keeps what podium simulate -f FILE plays",
    "pods": "counts pods on nodes; --nodes shows them",
    "nodes": "is about pods; --pods shows them, and podium explain POD --all-nodes what each node says of one",
}


@dataclass(frozen=True, slots=True)
class Playing(Asking):
    """What a question is asked with that is played: how the run goes as well."""

    options: RunOptions

    def play(self, read: Input, question: Question) -> Played:
        """Play a question in front of somebody, and keep it where that is wanted."""
        from podium.app.planning.question import play_question

        with self.watched("playing the plan") as progress:
            played = play_question(read, question, self.options, progress, stories=self.stories)
        self.save_played(played, self.options)
        return played

    def save_played(self, played: Played, options: RunOptions) -> None:
        """Keep what was played with these options, where that is wanted."""
        from podium.app.planning.saving import save_scenario

        if self.save:
            save_scenario(self.save, played.read, played.scenario, options)


@dataclass(frozen=True, slots=True)
class Deciding(Asking):
    """What a question is asked with that plays nothing: who decides as well."""

    config: str | None
    ignore_extenders: bool
    feature_gates: FeatureGates

    def load(self) -> LoadedCluster:
        """The cluster, read in front of somebody."""
        from podium.app.cluster import Cluster as LoadedCluster
        from podium.app.decision_settings import DecisionSettings
        from podium.framework.settings.configuration import load_configuration

        configuration = load_configuration(self.config) if self.config else None
        return LoadedCluster(self.read(), DecisionSettings(configuration, self.feature_gates, self.ignore_extenders))

    def save_decided(self, loaded: LoadedCluster, answer: PlanAnswer) -> None:
        """Keep a scenario that shows the answer when it is played, where that is wanted."""
        from podium.app.planning.saving import save_decided

        if self.save:
            save_decided(self.save, loaded.read, answer, self._told)

    @property
    def _told(self) -> str:
        """The options of `podium simulate` under which it decides as here."""
        told = f" --config {self.config}" if self.config else ""
        told += " --ignore-extenders" if self.ignore_extenders else ""
        return f"{told} --feature-gates {self.feature_gates}" if self.feature_gates.is_any_off else told


_OPTIONS = (
    validate_option,
    output_option_of(
        ("text", "json", "yaml", "csv", HTML),
        "How the answer is printed; csv is the impact by workload or the question's own table, html a picture.",
    ),
    click.option(
        "--save", metavar="FILE", default="", help="Keep in a file what podium simulate -f FILE plays to show the same."
    ),
    click.option(
        "--fail-on",
        type=Codes(),
        default=(),
        metavar="CODES",
        help="End with 2 where something is found of these, with commas between them: "
        f"{', '.join(FINDING_CODES)}; or any.",
    ),
    click.option("--timeline", is_flag=True, help="Show what happens when, where something is played."),
    click.option("--pods", is_flag=True, help="Show each pod: of the workloads with an impact, or asked about."),
    click.option("--nodes", "all_nodes", is_flag=True, help="Show every node."),
    click.option(
        "--outcomes",
        is_flag=True,
        help="List in how many ways chance may have it come out, by who suffers: it is told again with other draws.",
    ),
    click.option(
        "--stories",
        type=click.IntRange(min=1, max=MOST_STORIES),
        default=20,
        show_default=True,
        metavar="N",
        help="How often it is told for --outcomes, at most.",
    ),
)
_DECIDING = (config_option, ignore_extenders_option, feature_gates_option)


def playing_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options of a question that is played; the command gets them as `asking`, with what the group read."""
    return override_option(single_run_options(_asked(command, Playing, ("options",))))


def deciding_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options of a question that plays nothing; the command gets them as `asking`, too."""
    decorated = override_option(_asked(command, Deciding, ("config", "ignore_extenders", "feature_gates")))
    for option in reversed(_DECIDING):
        decorated = option(decorated)
    return decorated


def _asked(
    command: Callable[..., Answer], kind: Callable[..., Asking], further: Sequence[str]
) -> Callable[..., Answer]:
    """The command with the options that all questions share, which come to it with the `further` ones of its kind."""

    @wraps(command)
    @click.pass_obj
    def with_asking(
        group: Source | None,
        /,
        *,
        source: Source,
        validation: Validation | None,
        form: str,
        save: str,
        fail_on: tuple[str, ...],
        outcomes: bool,
        stories: int,
        **given: Any,
    ) -> Answer:
        shown = tuple(part for option, part in _SHOWN.items() if given.pop(option))
        named = joined(group or Source(), source)
        own = {name: given.pop(name) for name in further}
        if "options" in own and form == HTML:
            own["options"] = replace(own["options"], tells_placements=True)
        told = stories if outcomes else 0
        return command(asking=kind(named, validation, form, save, fail_on, shown, told, **own), **given)

    decorated: Callable[..., Answer] = with_asking
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
