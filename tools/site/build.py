"""The documents as a site: a folder of pages that opens from disk and that any file server can serve.

`python3 tools/dev.py site [FOLDER]` builds it and checks its links. The pages load nothing from elsewhere, and need
scripts only for the search.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from pygments.formatters import HtmlFormatter

from tools.site.layout import page_in_full
from tools.site.links import problems_of
from tools.site.navigation import DOCUMENTS, ROOT
from tools.site.page import Page, file_address, read_page

ASSETS = Path(__file__).resolve().parent / "assets"
_MARK = ".podium-site"


def build(folder: Path) -> None:
    """Build the site into a folder, replacing an earlier site. Raises FileExistsError for another folder."""
    if folder.exists():
        if any(folder.iterdir()) and not (folder / _MARK).is_file():
            raise FileExistsError(f"{folder} holds something else than a site")
        shutil.rmtree(folder)
    pages = [read_page(document) for document in DOCUMENTS]
    titles = {page.document: page.title for page in pages}
    addresses = {page.document: page.address for page in pages}
    for page in pages:
        _write(folder / page.address, page_in_full(page, titles, addresses))
    for file in sorted(set().union(*(page.files for page in pages))):
        target = folder / file_address(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    _write(folder / "assets" / "site.css", (ASSETS / "site.css").read_text() + _colours())
    _write(folder / "assets" / "site.js", (ASSETS / "site.js").read_text())
    _write(folder / "assets" / "index.js", f"window.podiumIndex = {json.dumps(_index(pages), ensure_ascii=False)};\n")
    # Prevents GitHub Pages from processing the folder with Jekyll.
    _write(folder / ".nojekyll", "")
    _write(folder / _MARK, "")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _colours() -> str:
    """Return the colours of code, light and dark."""
    light, dark = (
        HtmlFormatter(style=style, classprefix="").get_style_defs("pre code") for style in ("default", "github-dark")
    )
    rules = [[line for line in rules.splitlines() if line.startswith("pre code .")] for rules in (light, dark)]
    return "\n".join([*rules[0], "@media (prefers-color-scheme: dark) {", *rules[1], "}"]) + "\n"


def _index(pages: list[Page]) -> list[list[str]]:
    """Return the search index: page title, address, title and text of each section."""
    return [
        [page.title, f"{page.address}#{section.anchor}", section.title, " ".join(section.text.split())]
        for page in pages
        for section in page.sections
    ]


def main(names: list[str]) -> int:
    """Build the site into the named folder, or `site`; return 1 if its links have problems."""
    folder = Path(names[0]) if names else ROOT / "site"
    build(folder)
    problems = problems_of(folder)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(DOCUMENTS)} pages in {folder}: open {folder / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
