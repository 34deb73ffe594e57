"""Keeping what was asked as files that `podium simulate` plays, so that a question becomes a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from podium.api.errors import escape
from podium.api.input.codec import Input
from podium.api.meta import Raw
from podium.api.times import format_duration, format_exact_time
from podium.app.console.output import in_yaml
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.question import with_scenario
from podium.sim.run_options import RunOptions

_LONGEST = 1_000


def save_scenario(file: str, read: Input, scenario: Raw, options: RunOptions) -> None:
    """Write the cluster and the scenario that was played, as `podium simulate -f FILE` plays them.

    What is an option there, such as the seed, stands in a comment at the beginning.
    """
    _write(file, [f"podium simulate -f {Path(file).name}{_told(options)}"], _documents(read, scenario))


def save_decided(file: str, read: Input, answer: PlanAnswer, options: str = "") -> None:
    """Write the cluster and the scenario that shows the answer, and beside it the change that would help.

    Comments at the beginning say what to play, with which options, and what is seen then.
    """
    if answer.scenario is None:
        return
    play = f"podium simulate -f {Path(file).name}{options}"
    comments = [play, f"  {answer.headline}"]
    if answer.remedy is not None:
        change = _beside(file)
        comments += [f"{play} --override {change.name}", f"  with {answer.remedy.text}"]
        _write(str(change), [f"{answer.remedy.text}: see {Path(file).name}"], answer.remedy.objects)
    _write(file, comments, _documents(read, answer.scenario))


def _beside(file: str) -> Path:
    """The file of the change: cluster-change.yaml beside cluster.yaml."""
    path = Path(file)
    return path.with_name(f"{path.stem}-change{path.suffix}")


def _documents(read: Input, scenario: Raw) -> Iterable[Raw]:
    return (document.raw for document in with_scenario(read, scenario).documents)


def _write(file: str, comments: Iterable[str], documents: Iterable[Raw]) -> None:
    with Path(file).open("w", encoding="utf-8") as stream:
        stream.writelines(f"# {escape(comment, _LONGEST)}\n" for comment in comments)
        for raw in documents:
            stream.write(f"---\n{in_yaml(raw)}")


def _told(options: RunOptions) -> str:
    """The options of `podium simulate` that say the same."""
    durations = {
        "until": options.until_ns,
        "start-delay": options.start_delay_ns or None,
        "bind-delay": options.bind_delay_ns or None,
        "termination": options.termination_ns,
    }
    told = [f" --{name} {format_duration(lasts)}" for name, lasts in durations.items() if lasts is not None]
    if options.seed:
        told.append(f" --seed {options.seed}")
    if options.start_ns is not None:
        told.append(f" --start {format_exact_time(options.start_ns)}")
    if options.configuration is not None:
        told.append(f" --config {options.configuration.source}")
    return "".join(told)
