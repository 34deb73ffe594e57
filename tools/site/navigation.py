"""The list of the site's documents, in order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A group of documents in the navigation, as paths from the root; `is_folded`: collapsed at first."""

    title: str
    documents: tuple[str, ...]
    is_folded: bool = False


def _all_of(folder: str) -> tuple[str, ...]:
    return tuple(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).glob("*.md")))


CHAPTERS = (
    Chapter("Start", ("README.md", "docs/comparison.md")),
    Chapter(
        "For",
        (
            "docs/users/operators.md",
            "docs/users/policy-authors.md",
            "docs/users/researchers.md",
            "docs/users/testers.md",
        ),
    ),
    Chapter(
        "Cookbook",
        (
            "docs/cookbook.md",
            "docs/cookbook/deploy.md",
            "docs/cookbook/drain.md",
            "docs/cookbook/fail.md",
            "docs/cookbook/nodes.md",
            "docs/cookbook/change.md",
            "docs/cookbook/pending.md",
            "docs/cookbook/fit.md",
            "docs/cookbook/survive.md",
            "docs/cookbook/compare.md",
            "docs/cookbook/reschedule.md",
            "docs/cookbook/upgrade.md",
        ),
    ),
    Chapter(
        "Questions",
        (
            "docs/explain.md",
            "docs/plans.md",
            "docs/ci.md",
            "docs/pictures.md",
            "docs/scenarios.md",
            "docs/sweep.md",
            "docs/ledger.md",
            "docs/snapshots.md",
            "docs/recordings.md",
            "docs/dynamic-resources.md",
            "docs/validation.md",
            "docs/priority-and-quota.md",
            "docs/preemption-policies.md",
            "docs/preemption.md",
            "docs/gangs.md",
        ),
    ),
    Chapter(
        "Clusters",
        (
            "docs/up.md",
            "docs/kubectl.md",
            "docs/kubectl-plugin.md",
            "docs/api.md",
            "docs/http.md",
            "docs/scheduler.md",
            "docs/rescheduler.md",
            "docs/rescheduling-policies.md",
            "docs/deploy.md",
            "docs/exporter.md",
            "docs/admission.md",
            "docs/security.md",
        ),
    ),
    Chapter(
        "Reference",
        (
            "docs/reference/commands.md",
            "docs/reference/settings.md",
            "docs/reference/kinds.md",
            "docs/reference/upstream-tests.md",
            "docs/configuration.md",
            "docs/versions.md",
            "docs/python.md",
            "docs/mcp.md",
            "docs/notebook.ipynb",
            "docs/tutorial-plugins.md",
            "docs/benchmarks.md",
            "docs/glossary.md",
        ),
    ),
    Chapter(
        "How it is",
        (
            "docs/architecture.md",
            "docs/differences.md",
            "docs/proof.md",
            "docs/rescheduling-study.md",
            "docs/gpu-sharing-study.md",
            "docs/scheduling-automata.md",
        ),
    ),
    Chapter("Decisions", _all_of("docs/decisions"), is_folded=True),
    Chapter("Project", ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
)
"""The navigation. A test requires that every document is in a chapter."""

DOCUMENTS = tuple(document for chapter in CHAPTERS for document in chapter.documents)
"""All documents in the order of the navigation and of the links to neighbours."""


def address_of(document: str) -> str:
    """Return a document's address on the site: `docs/users/operators.md` is `users/operators.html`."""
    if document == "README.md":
        return "index.html"
    if document == "SECURITY.md":
        return "security-policy.html"
    return f"{document.removeprefix('docs/').rpartition('.')[0].lower()}.html"
