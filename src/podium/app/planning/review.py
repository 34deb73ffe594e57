"""A plan for reviewers: one line of sums, Markdown for pull requests, and annotations for GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.api.input.codec import Document
from podium.app.console.cells import counted
from podium.app.planning.answer import PlanAnswer, anyway_text, lasting_text
from podium.app.planning.impact import WorkloadImpact
from podium.controllers.workloads.owned_pods import label_of

MOST_CHARACTERS = 60_000
"""The longest Markdown; GitHub refuses comments beyond 65,536 characters."""

# Findings that are only worth a warning: the workloads are back at the end.
_WARNINGS = ("preempt", "evict", "budget", "short")
_CUT = "\n\n(cut: `podium plan -o text` prints the whole answer)\n"


def plan_markdown(answer: PlanAnswer) -> str:
    """Return the plan for a pull request: the sums, a line for each affected workload, and the text folded away."""
    lines = [f"**{_escaped(answer.summary or answer.headline)}**", ""]
    if answer.summary:
        lines += [_escaped(answer.headline), ""]
    if answer.impact:
        shown = list(answer.impact[:200])
        lines += ["```diff", *map(diff_line, shown)]
        left = len(answer.impact) - len(shown)
        lines += [f"  and {counted(left, 'more workload')}"] * bool(left) + ["```", ""]
    if anyway_text(answer):
        lines += [f"Not because of this change: {_escaped(anyway_text(answer))}.", ""]
    lines += [f"- {_escaped(caveat.message)}" for caveat in answer.caveats]
    text = answer.text.rstrip().replace("```", "'''")
    folded = f"\n<details><summary>The whole answer</summary>\n\n```text\n{text}\n```\n\n</details>\n"
    whole = "\n".join(lines) + "\n"
    if len(whole) + len(folded) <= MOST_CHARACTERS:
        return whole + folded
    return whole if len(whole) <= MOST_CHARACTERS else whole[: MOST_CHARACTERS - len(_CUT)] + _CUT


def workflow_commands(answer: PlanAnswer, documents: Iterable[Document], file: str) -> Iterator[str]:
    """Return a GitHub workflow command for each finding, on the file of ``documents`` that the finding is about.

    A finding about other objects is on ``file``, "" for none.
    """
    sources = {label_of(found.object): found.source for found in documents if found.object is not None}
    yield f"::notice title=podium plan {_property(answer.question)}::{_data(answer.summary or answer.headline)}"
    for finding in answer.findings:
        level = "warning" if finding.code in _WARNINGS else "error"
        found = next((sources[subject] for subject in finding.subjects if subject in sources), file)
        where = f"file={_property(found)}," if found else ""
        yield f"::{level} {where}title=podium {_property(finding.code)}::{_data(finding.message)}"


def diff_line(impact: WorkloadImpact) -> str:
    """Return a line that a diff colors: + for more ready pods, - for fewer at the end, ! for disruptions between."""
    what = []
    gain = impact.ready_after - impact.ready_without_plan
    if gain > 0:
        what.append(f"{gain:,} more ready")
    if impact.missing > 0:
        what.append(f"{impact.missing:,} missing at the end")
    if impact.stuck:
        what.append(f"{impact.stuck:,} of a rollout wait for a node at the end")
    what += [f"{number:,} disrupted by {cause}" for cause, number in impact.disruptions.items() if number > 0]
    if impact.short_seconds > 0:
        what.append(f"short for {lasting_text(impact)}")
    if impact.why:
        what.append(impact.why)
    is_hit = (impact.disruptions or impact.short_seconds > 0) and not impact.is_new
    sign = "-" if impact.missing > 0 or impact.stuck else "!" if is_hit else "+"
    return f"{sign} {impact.workload}: {', '.join(what) or 'waits longer for nodes'}"


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~" else letter for letter in text)


def _data(text: str) -> str:
    """Return the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return the value of a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
