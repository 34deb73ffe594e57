"""Links in documents lead to existing targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import DOCUMENTS, ROOT, name_of, prose_of

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
LAYERS = {path.name for path in (ROOT / "src/podium").iterdir() if path.is_dir()}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)


@each_document
def test_links_lead_to_files_and_headings(document: Path) -> None:
    for target in LINK.findall(prose_of(document)):
        if target.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document

        assert file.exists(), f"{name_of(document)}: {target}"
        assert file.is_relative_to(ROOT), f"{name_of(document)}: {target} leads out of the project"
        assert not anchor or anchor in anchors_of(file), f"{name_of(document)}: {target}"


@each_document
def test_files_that_are_named_exist(document: Path) -> None:
    for text in CODE.findall(prose_of(document)):
        path = re.fullmatch(r"(?P<top>\w+)(?:/[\w.-]+)*/[\w-]+\.(?:py|yaml|md|toml|txt)", text)
        if path is None or path["top"] in ("docs", "examples", "requirements", "src", "tests", "tools"):
            assert path is None or (ROOT / text).is_file(), f"{name_of(document)}: {text}"
        elif path["top"] in LAYERS:
            assert (ROOT / "src/podium" / text).is_file(), f"{name_of(document)}: {text}"


def anchors_of(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, left = set[Path](), [ROOT / "README.md"]
    while left:
        document = left.pop()
        if document in reached:
            continue
        reached.add(document)
        targets = (target.partition("#")[0] for target in LINK.findall(prose_of(document)))
        left += [(document.parent / one).resolve() for one in targets if one.endswith(".md") and "://" not in one]

    assert reached >= set(DOCUMENTS)
