"""The site has every document, its links lead to existing pages, and it loads nothing from elsewhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.app.reporting.browser import PATIENCE_MS, open_browser
from tests.docs.blocks import DOCUMENTS, ROOT, name_of
from tests.docs.test_links import anchors_of
from tools.site.build import build
from tools.site.links import problems_of, read_html
from tools.site.navigation import CHAPTERS, address_of
from tools.site.navigation import DOCUMENTS as ON_THE_SITE
from tools.site.publish import BRANCH, publish
from tools.site.source import NOTEBOOK, markdown_of


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


def test_every_document_has_its_place_in_the_navigation() -> None:
    listed = [document for chapter in CHAPTERS for document in chapter.documents]

    assert sorted(listed) == sorted(map(name_of, (*DOCUMENTS, *(ROOT / "docs").rglob("*.ipynb"))))
    assert len({address_of(document) for document in listed}) == len(listed)


def test_no_link_leads_nowhere_and_nothing_comes_from_elsewhere(site: Path) -> None:
    assert problems_of(site) == []


def test_every_page_leads_to_every_other_and_names_its_headings_as_the_document_does(site: Path) -> None:
    for document in ON_THE_SITE:
        page = read_html((site / address_of(document)).read_text())
        up = "../" * address_of(document).count("/")

        assert {f"{up}{address_of(other)}" for other in ON_THE_SITE} <= set(page.links)
        assert document.endswith(NOTEBOOK) or anchors_of(ROOT / document) <= page.ids


def test_a_notebook_is_a_page_with_what_its_cells_print(site: Path) -> None:
    page = (site / "notebook.html").read_text()
    cells = json.loads((ROOT / "docs/notebook.ipynb").read_text())["cells"]

    assert markdown_of("docs/notebook.ipynb").count("```python\n") == sum(cell["cell_type"] == "code" for cell in cells)
    assert "&lt;Cluster:" in page


def test_broken_links_are_found(tmp_path: Path) -> None:
    links = '<a href="a.html#b"></a><a href="c.html"></a><a href="../x"></a>'
    (tmp_path / "index.html").write_text(f'{links}<script src="https://d"></script><img src="//e">')
    (tmp_path / "a.html").write_text('<a href="#here"></a>')
    (tmp_path / "alone.html").write_text('<p id="p"></p><a href="#p"></a>')
    (tmp_path / "s.css").write_text("@import 'x';")

    assert problems_of(tmp_path) == [
        "a.html: #here leads to no heading",
        "index.html: loads https://d from elsewhere",
        "index.html: loads //e from elsewhere",
        "index.html: a.html#b leads to no heading",
        "index.html: c.html leads nowhere",
        "index.html: ../x leads nowhere",
        "alone.html: no page links to it",
        "s.css: loads something",
    ]


def test_search_covers_the_sections_of_all_pages(site: Path) -> None:
    text = (site / "assets/index.js").read_text()
    index = json.loads(text.removeprefix("window.podiumIndex = ").removesuffix(";\n"))

    assert {address.partition("#")[0] for _, address, _, _ in index} == set(map(address_of, ON_THE_SITE))
    assert ["Plans", "plans.html#drain-nodes", "Drain nodes"] in [entry[:3] for entry in index]


def test_the_search_works_from_disk_without_network_requests(site: Path) -> None:
    with open_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        complaints, asked = list[str](), list[str]()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "users/operators.html").as_uri())

        page.keyboard.press("/")
        page.keyboard.type("drain nodes")
        page.click("#found a >> text=Plans: Drain nodes")
        page.wait_for_url("**/plans.html#drain-nodes")

        assert page.evaluate("document.querySelector(':target').textContent") == "Drain nodes"
        assert complaints == []
        assert [url for url in asked if not url.startswith("file:")] == []


def test_markup_in_a_document_stays_text(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert page.read_text().count("<script") == 1, page


def test_the_same_documents_give_the_same_site(site: Path, tmp_path: Path) -> None:
    build(tmp_path / "again")
    files = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}

    assert files == {
        path.relative_to(tmp_path / "again"): path.read_bytes()
        for path in (tmp_path / "again").rglob("*")
        if path.is_file()
    }


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(FileExistsError, match="something else"):
        build(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_the_published_site_contains_only_the_site(site: Path, tmp_path: Path) -> None:
    def git(*arguments: str, folder: Path) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout

    here, there = tmp_path / "here", tmp_path / "there.git"
    here.mkdir()
    git("init", "--quiet", "--bare", str(there), folder=tmp_path)
    git("init", "--quiet", folder=here)
    git("config", "user.name", "a", folder=here)
    git("config", "user.email", "a@b", folder=here)
    git("commit", "--quiet", "--allow-empty", "-m", "a document", folder=here)
    (here / "staged").write_text("")
    git("add", "staged", folder=here)

    first = publish(site, str(there), here)
    again = publish(site, str(there), here)

    assert git("rev-parse", BRANCH, folder=there).strip() == again
    assert git("rev-list", "--count", BRANCH, folder=there).strip() == "1"
    published = set(git("ls-tree", "-r", "--name-only", BRANCH, folder=there).splitlines())
    assert published == {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert git("rev-parse", f"{first}^{{tree}}", folder=there) == git("rev-parse", f"{again}^{{tree}}", folder=there)
    assert git("diff", "--cached", "--name-only", folder=here) == "staged\n"
