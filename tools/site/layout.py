"""The layout of a page: head, navigation, table of contents, and links to neighbours."""

from __future__ import annotations

from html import escape

from tools.site.navigation import CHAPTERS, DOCUMENTS, Chapter
from tools.site.page import Page

# Nothing is loaded from elsewhere, and documents cannot add scripts.
_POLICY = "default-src 'none'; img-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'"
_DEEPEST = 3


def page_in_full(page: Page, titles: dict[str, str], addresses: dict[str, str]) -> str:
    """Return the HTML of a page; `titles` and `addresses` are those of all documents."""
    root = page.to_root
    title = "Podium" if page.document == "README.md" else f"{page.title} · Podium"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="stylesheet" href="{root}assets/site.css">
<script defer src="{root}assets/site.js"></script>
</head>
<body data-root="{root}">
<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="name" href="{root}index.html">Podium</a>
<div class="search" role="search">
<input id="query" type="search" placeholder="Search  /" aria-label="Search" autocomplete="off" spellcheck="false">
<ol id="found" hidden></ol>
</div>
</header>
<nav class="site" aria-label="All pages"><details class="menu" open><summary>Pages</summary>
{_navigation(page, titles, addresses)}</details></nav>
<main id="text">
{page.html}{_way_on(page, titles, addresses)}</main>
{_contents(page)}</body>
</html>
"""


def _navigation(page: Page, titles: dict[str, str], addresses: dict[str, str]) -> str:
    return "".join(_chapter(chapter, page, titles, addresses) for chapter in CHAPTERS)


def _chapter(chapter: Chapter, page: Page, titles: dict[str, str], addresses: dict[str, str]) -> str:
    items = "".join(
        f'<li><a href="{page.to_root}{addresses[document]}"'
        f"{' aria-current=page' if document == page.document else ''}>{escape(titles[document])}</a></li>\n"
        for document in chapter.documents
    )
    state = " open" if not chapter.is_folded or page.document in chapter.documents else ""
    return f"<details{state}><summary>{escape(chapter.title)}</summary>\n<ul>\n{items}</ul></details>\n"


def _contents(page: Page) -> str:
    """Return the page's headings if there are enough of them."""
    sections = [section for section in page.sections if 2 <= section.level <= _DEEPEST]
    if len(sections) < 2:
        return ""
    items = "".join(
        f'<li class="level-{section.level}"><a href="#{section.anchor}">{escape(section.title)}</a></li>\n'
        for section in sections
    )
    return f'<nav class="page" aria-label="On this page"><p>On this page</p>\n<ul>\n{items}</ul></nav>\n'


def _way_on(page: Page, titles: dict[str, str], addresses: dict[str, str]) -> str:
    """Return links to the previous and next document of the navigation."""
    place = DOCUMENTS.index(page.document)
    links = []
    if place:
        links.append(("prev", DOCUMENTS[place - 1]))
    if place + 1 < len(DOCUMENTS):
        links.append(("next", DOCUMENTS[place + 1]))
    shown = "".join(
        f'<a rel="{way}" href="{page.to_root}{addresses[document]}">{escape(titles[document])}</a>\n'
        for way, document in links
    )
    return f'<footer class="way">\n{shown}</footer>\n'
