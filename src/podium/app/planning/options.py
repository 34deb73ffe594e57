"""The inputs of `podium plan`'s questions on the command line: options, the cluster, and the form of the answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from podium.api.collector import collector_paused
from podium.app.console import options as shared
from podium.app.console.command import Command, option
from podium.app.planning.constants import FINDING_CODES, MAX_SAMPLES
from podium.app.using import completion

# The commands start without these, which take longer to import than to print a help text.
if TYPE_CHECKING:
    from podium.api.basis import Caveat
    from podium.api.errors import Validation
    from podium.api.input.codec import Document, Input
    from podium.api.meta import Raw
    from podium.api.versions.choice import ReleaseChoice
    from podium.app.cluster import Cluster
    from podium.app.inputs import DecisionSettings
    from podium.app.planning.answer import PlanAnswer, PlanProgress
    from podium.app.planning.questions.diff import Setting
    from podium.app.planning.saved import SavedPlan
    from podium.framework.rescheduling.configuration import ReschedulerConfiguration
    from podium.sim.run_options import RunOptions


CHECKED = "podium.plan.checked"
"""In the context's meta during a check of a saved plan: a `Check`."""

# How the names of files of --save end that are scenarios; other ones are saved plans.
_SCENARIOS = (".yaml", ".yml")
_OTHERWISE = "a cluster with --context, or podium use FILE first"
_WORDS = "podium.plan.words"
_ANY = "any"
# The part of the answer that each option adds; questions name their nodes with `nodes`.
_PARTS = {"timeline": "timeline", "pods": "pods", "all_nodes": "nodes"}
# What to use instead if a question has no such part.
_INSTEAD = {
    "timeline": "decides about one moment; podium simulate -f FILE.yaml plays what --save FILE.yaml writes",
    "pods": "counts pods on nodes; --nodes shows them",
    "nodes": "is about pods; --pods shows them, and podium explain POD --all-nodes every node's verdict on one",
}


class Check(Struct):
    """The cluster for a saved question, and the answer, which is not shown: a plan to save, and the caveats."""

    source: shared.Source
    answer: tuple[SavedPlan, tuple[Caveat, ...]] | None = None


class FindingCodes(click.ParamType[tuple[str, ...]]):
    """Codes of findings separated by commas, or `any`."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        codes = tuple(code.strip() for code in value.split(",") if code.strip())
        unknown = [code for code in codes if code not in (*FINDING_CODES, _ANY)]
        if unknown or not codes:
            problem = f"{unknown[0]!r} is not a code" if unknown else "names no code"
            self.fail(f"{problem}; any, or some of {', '.join(FINDING_CODES)} with commas", param, ctx)
        return tuple(FINDING_CODES) if _ANY in codes else codes


class _Manifests(click.types.StringParamType):
    """The name of a file of manifests; if it is missing, the error says where it belongs."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        name = "" if ctx is None else f" {ctx.info_name}"
        return f"Files of -f are the cluster. Name those of the change without it: podium plan{name} FILE -f CLUSTER."


def node_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments that select nodes: names, also short ones and patterns, and a label selector."""
    help_text = "The nodes with these labels, in kubectl's syntax."
    command = option("-l --selector", help_text, default="", metavar="LABELS")(command)
    return click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=completion.nodes)(command)


def manifest_arguments(*, is_required: bool = True) -> shared.Decorator[Any]:
    """Add the arguments that name the files of a change; `-f` names the cluster, here and everywhere."""
    metavar = "FILE..." if is_required else "[FILE]..."
    return click.argument("manifests", type=_Manifests(), nargs=-1, required=is_required, metavar=metavar)


class QuestionCommand(Command):
    """A command that asks a question; it keeps its words, so that the question can be saved."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        # One pause from reading to the answer: at each end of a pause the collector visits all objects. The process
        # ends soon: what the collector would examine is not worth freeing.
        with collector_paused(keeps_objects=True):
            return super().invoke(ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionInputs:
    """The inputs of every question: the cluster's source, and how the answer is shown and saved.

    The methods that commands call are also those of the inputs on a page, which have texts in place of files.
    ``samples`` is the number of runs with different tie-breaks, 0 for none. ``found`` holds the cluster that was read.
    """

    source: shared.Source
    validation: Validation | None
    form: str
    save: tuple[str, ...]
    fail_on: tuple[str, ...]
    parts: tuple[str, ...]
    samples: int
    release: ReleaseChoice
    found: list[Input] = field(default_factory=list)

    def read(self) -> Input:
        """Return the cluster, showing progress. Raises UsageError without one."""
        from podium.app.console.reading import read_shown

        self.found.append(read_shown(self.source.needed(_OTHERWISE), self.validation))
        return self.found[0]

    def documents(self, files: Sequence[str]) -> list[Document]:
        """Return the objects that the question is about."""
        from podium.api.input.codec import load_files

        return load_files(list(files), self.validation) if files else []

    def patches(self, files: Sequence[str]) -> list[Raw]:
        """Return the patches in files."""
        from podium.api.input.codec import objects_in
        from podium.api.input.files import read_bytes, shown_name

        return [patch for file in files for patch in objects_in(read_bytes(file), shown_name(file))]

    def rescheduler(self, file: str) -> ReschedulerConfiguration:
        """Return the rescheduler's configuration; a cautious one without a file."""
        from podium.framework.rescheduling.configuration import default_rescheduler, load_rescheduler

        return load_rescheduler(file) if file else default_rescheduler()

    def setting(self, _: str, files: Sequence[str]) -> Setting:
        """Return the setting in files; that of the cluster without files."""
        from podium.app.planning.questions.diff import UNCHANGED, read_setting

        names = (file.rstrip("/").rpartition("/")[2] for file in files)
        return read_setting(" and ".join(names) or UNCHANGED, self.documents(files))

    def show(self, doing: str, ask: Callable[[PlanProgress], PlanAnswer]) -> None:
        """Ask a question, showing progress, and print the answer; for a check of a saved plan, only keep it.

        Write the files of --save, and exit with 2 for findings of --fail-on.
        """
        from podium.app.console.output import show_answer
        from podium.app.console.progress import ProgressBar
        from podium.app.planning.answer import plan_markdown, write_answer
        from podium.app.planning.scenarios import save_answer

        with ProgressBar(doing) as bar:
            answer = ask(lambda share, what: bar.update(share, lambda: what))
        context = click.get_current_context()
        check: Check | None = context.meta.get(CHECKED)
        scenarios = [file for file in self.save if file.endswith(_SCENARIOS)]
        if len(scenarios) < len(self.save) or check is not None:
            from podium.app.planning.saved import plan_of, write_plan

            (read,) = self.found
            version = str(self.release.for_documents(read.documents)[0])
            saved = plan_of(context, context.meta[_WORDS], self.source.overrides, answer, read, version)
            if check is not None:
                check.answer = saved, answer.caveats
                return
            for file in self.save:
                if file not in scenarios:
                    write_plan(file, saved)
        for file in scenarios:
            save_answer(file, answer)
        if self.form == "csv":
            # CSV has no comments, and a row of sums would distort the table.
            click.echo(answer.summary or answer.headline, err=True)
        if self.form == "markdown":
            click.echo(plan_markdown(answer), nl=False)
        elif self.form == "github":
            self._annotate(answer)
        else:
            show_answer(answer, self.form, lambda page: write_answer(page, answer, self.parts))
        if any(code in self.fail_on for code in answer.codes):
            context.exit(2)

    def _annotate(self, answer: PlanAnswer) -> None:
        """Print GitHub's annotations on the question's own files; add Markdown to the summary of the job, if any."""
        from podium.app.planning.answer import plan_markdown, workflow_commands

        context = click.get_current_context()
        files = [*context.params.get("manifests", ()), *context.params.get("after_files", ())]
        # Standard input cannot be read again, and a patch is only a part of its object.
        documents = [] if "-" in files else self.documents(files)
        # Each is a file: a folder has no lines.
        files = [*(each.source for each in documents), *context.params.get("patch_files", ())]
        click.echo("\n".join(workflow_commands(answer, documents, files[0] if files else "")))
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(plan_markdown(answer))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs(QuestionInputs):
    """The inputs of a question that is played."""

    options: RunOptions

    def answer(
        self, question: Callable[..., PlanAnswer], *arguments: Any, doing: str = "playing the plan", **options: Any
    ) -> None:
        """Ask a question about the cluster, showing progress, and show the answer."""
        from podium.app.planning.question import PlanRun

        # Other answers show some pods alone.
        read, shows_all = self.read(), self.form in ("json", "yaml", shared.HTML) or _PARTS["pods"] in self.parts

        def ask(progress: PlanProgress) -> PlanAnswer:
            run = PlanRun(read, self.options, progress, self.samples, forks=True, is_brief=not shows_all)
            return question(run, *arguments, **options)

        self.show(doing, ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInputs(QuestionInputs):
    """The inputs of a question that is decided without a run."""

    settings: DecisionSettings

    def load(self) -> Cluster:
        from podium.app.console.reading import cluster_of

        return cluster_of(self.read(), self.settings)


_OPTIONS = (
    shared.validate_option,
    shared.output_option_of(
        ("text", "json", "yaml", "csv", shared.HTML, "markdown", "github"),
        "How the answer is printed; csv is the impact by workload or the question's own table, html a picture, "
        "markdown a comment for a pull request, github annotations and, in an Action, the job's summary.",
    ),
    option(
        "--save",
        "Save the question, its answer and a fingerprint of the cluster for podium plan check FILE; or, in a file "
        f"named *{' or *'.join(_SCENARIOS)}, the cluster and the change: podium simulate -f FILE gives the same "
        "result. May be repeated.",
        metavar="FILE",
        multiple=True,
    ),
    option(
        "--fail-on",
        f"Exit with 2 for findings with these codes, separated by commas: {', '.join(FINDING_CODES)}; or any.",
        type=FindingCodes(),
        default=(),
        metavar="CODES",
    ),
    option("--timeline", "Show the timeline of questions that are played.", is_flag=True),
    option("--pods", "Show each pod: of the workloads with an impact, or asked about.", is_flag=True),
    option("--nodes all_nodes", "Show every node.", is_flag=True),
    option(
        "--outcomes",
        "List the outcomes that the plan may have by chance, by the workloads that lose pods: run it several "
        "times with different tie-breaks.",
        is_flag=True,
    ),
    option(
        "--samples",
        "The number of runs for --outcomes.",
        type=click.IntRange(min=1, max=MAX_SAMPLES),
        default=20,
        show_default=True,
        metavar="N",
    ),
)


def _question_options(
    kind: type[QuestionInputs], known: Collection[str], *options: shared.Decorator[Any]
) -> shared.Decorator[Any]:
    """Add the options that all questions share, and further ones, which become the inputs.

    The command raises UsageError for requested parts that are not ``known``.
    """

    def inputs_of(given: dict[str, Any]) -> QuestionInputs:
        context = click.get_current_context()
        given["parts"] = tuple(part for option, part in _PARTS.items() if given.pop(option))
        for part in given["parts"]:
            if part not in known:
                raise click.UsageError(f"--{part}: plan {context.info_name} {_INSTEAD[part]}")
        if (check := context.meta.get(CHECKED)) is not None:
            overrides = (*check.source.overrides, *given["source"].overrides)
            given["source"] = replace(check.source, overrides=overrides)
        given["samples"] *= given.pop("outcomes")
        if "options" in given and given["form"] == shared.HTML:
            given["options"] = replace(given["options"], records_placements=True)
        given["release"] = given["options" if "options" in given else "settings"].release
        return kind(**{name: given.pop(name) for name in kind.__dataclass_fields__ if name in given})

    return shared.adding("inputs", inputs_of, shared.source_options, *options, *_OPTIONS)


playing_options = _question_options(RunInputs, _PARTS.values(), shared.single_run_options)
"""Add the options of a question that is played; the command gets them as `inputs`."""


def deciding_options(part: str) -> shared.Decorator[Any]:
    """Add the options of a question that is decided without a run; the command gets them as `inputs`.

    The question has one ``part`` that is shown on request.
    """
    return _question_options(DecisionInputs, (part,), shared.settings_options)
