"""Link checks of a built site."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_LOADED = {"img": "src", "link": "href", "script": "src"}
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@dataclass(slots=True)
class Read:
    """A page's element ids, links, and loaded resources."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.read = Read()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.read.ids.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.read.links.append(str(given["href"]))
        if tag in _LOADED and given.get(_LOADED[tag]):
            self.read.loaded.append(str(given[_LOADED[tag]]))


def read_html(text: str) -> Read:
    """Return a page's ids, links and resources."""
    reader = _Reader()
    reader.feed(text)
    return reader.read


def problems_of(folder: Path) -> list[str]:
    """Return a site's problems: broken links, external resources, and pages without links to them."""
    pages = {
        path.relative_to(folder).as_posix(): read_html(path.read_text()) for path in sorted(folder.rglob("*.html"))
    }
    found, reached = [], {"index.html"}
    for name, page in pages.items():
        found += [f"{name}: loads {target} from elsewhere" for target in page.loaded if _ELSEWHERE.match(target)]
        for target in (*page.links, *page.loaded):
            if _ELSEWHERE.match(target):
                continue
            path, _, anchor = target.partition("#")
            file = (folder / name).parent.joinpath(path).resolve() if path else folder / name
            if not file.is_relative_to(folder.resolve()) or not file.is_file():
                found.append(f"{name}: {target} leads nowhere")
                continue
            other = file.relative_to(folder.resolve() if path else folder).as_posix()
            if other != name:
                reached.add(other)
            if anchor and other in pages and anchor not in pages[other].ids:
                found.append(f"{name}: {target} leads to no heading")
    found += [f"{name}: no page links to it" for name in pages if name not in reached]
    for sheet in sorted(folder.rglob("*.css")):
        if re.search(r"@import|url\(", sheet.read_text()):
            found.append(f"{sheet.relative_to(folder).as_posix()}: loads something")
    return found
