"""A document as a page: HTML, headings, search text, and the files that it refers to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from tools.site.navigation import DOCUMENTS, ROOT, address_of
from tools.site.source import markdown_of

_LEXERS = {"json": "json", "python": "python", "sh": "bash", "toml": "toml", "yaml": "yaml"}
_ELSEWHERE = ("https://", "mailto:")
_IMAGES = (".png", ".svg")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text below it. The page's title has level 1 and no anchor."""

    level: int
    title: str
    anchor: str
    text: str


@dataclass(slots=True)
class Page:
    """A page of the site. `files` are the project's files that it refers to, as paths from the root."""

    document: str
    address: str
    title: str = ""
    html: str = ""
    sections: list[Section] = field(default_factory=list)
    files: set[str] = field(default_factory=set)

    @property
    def to_root(self) -> str:
        """Return the relative path to the site's root: `../` for each folder."""
        return "../" * self.address.count("/")


def read_page(document: str) -> Page:
    """Return the page of a document. Raises FileNotFoundError for broken links."""
    page = Page(document, address_of(document))
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("fence", _fence)
    tokens = markdown.parse(markdown_of(document))
    _name_headings(page, tokens)
    for token in tokens:
        for child in token.children or ():
            _rewrite(page, child)
    if page.document == "README.md":
        page.title = "Podium"
    page.html = markdown.renderer.render(tokens, markdown.options, {"page": page})
    # A wide table scrolls by itself, not with the page.
    page.html = page.html.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    return page


def anchor_of(title: str) -> str:
    """Return the anchor of a heading as on GitHub, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def file_address(path: str) -> str:
    """Return the address of a project file on the site; text files get a name that browsers display."""
    if path.endswith(_IMAGES):
        return path.removeprefix("docs/")
    return f"files/{path}.txt"


def _name_headings(page: Page, tokens: Sequence[Token]) -> None:
    """Give each heading its anchor, and record each section."""
    level, title, anchor, texts = 1, "", "", list[str]()
    seen: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            if title:
                page.sections.append(Section(level, title, anchor, " ".join(texts)))
            inline = tokens[index + 1]
            level, title, texts = int(token.tag[1]), _text_of(inline), []
            made = anchor_of(inline.content)
            number = seen.get(made, 0)
            seen[made] = number + 1
            anchor = f"{made}-{number}" if number else made
            token.attrSet("id", anchor)
            page.title = page.title or title
        elif token.type == "inline" and tokens[index - 1].type != "heading_open":
            texts.append(_text_of(token))
        elif token.type == "fence":
            texts.append(token.content)
    page.sections.append(Section(level, title, anchor, " ".join(texts)))


def _text_of(inline: Token) -> str:
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content for child in inline.children or ()
    ).strip()


def _rewrite(page: Page, token: Token) -> None:
    """Point a link or image of the document to its place on the site."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    target = str(token.attrGet(name)) if name else ""
    if not name or target.startswith((*_ELSEWHERE, "#")):
        return
    path, _, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(page.document), path))
    if file not in DOCUMENTS:
        if not (ROOT / file).is_file():
            raise FileNotFoundError(f"{page.document}: {target} leads to no file")
        page.files.add(file)
    address = address_of(file) if file in DOCUMENTS else file_address(file)
    token.attrSet(name, page.to_root + address + (f"#{anchor}" if anchor else ""))
    if name == "src":
        token.attrSet("loading", "lazy")


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Return a highlighted block of code, below the name of the file that it quotes."""
    page: Page = env["page"]
    token = tokens[index]
    language, _, source = token.info.strip().partition(" ")
    head = ""
    if source:
        page.files.add(source)
        head = f'<p class="source"><a href="{page.to_root}{escape(file_address(source))}">{escape(source)}</a></p>\n'
    body = _session(token.content) if language == "console" else _coloured(token.content, language)
    # Code may scroll, so it must be reachable by keyboard.
    return f'{head}<pre tabindex="0"><code>{body}</code></pre>\n'


def _session(text: str) -> str:
    """Return a console session with highlighted commands and plain output."""
    lines, goes_on = [], False
    for line in text.splitlines():
        is_command = goes_on or line.startswith("$ ")
        goes_on = is_command and line.endswith("\\")
        lines.append(f"<b>{escape(line)}</b>" if is_command else escape(line))
    return "\n".join(lines) + "\n"


def _coloured(text: str, language: str) -> str:
    name = _LEXERS.get(language)
    if name is None:
        return escape(text)
    lexer: Any = get_lexer_by_name("pycon" if text.startswith(">>> ") else name, stripnl=False)
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True)))
