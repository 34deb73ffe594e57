"""The content of a page (runs side by side, a decision, or a sweep, with texts and tables), and its HTML file.

Data, style and script are one document. Its Content-Security-Policy allows only its own script and style, by their
hashes. The data is in a block that browsers do not run, and is never written as markup. Large data is compressed.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import resources

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import escape
from podium.app.answers import Value
from podium.app.console.cells import WORKLOADS, Name, Part, text_of
from podium.app.console.page import Section
from podium.app.reporting.run_timeline import RunTimeline

SCHEMA_VERSION = 1
"""The version of a page's data; page and data are in one file, so that they agree."""

_LONGEST = 4_000
_POD = "Pod "


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """Rows under headings; numbers are right-aligned. `subjects` are what a click on each row selects."""

    title: str
    headings: list[str]
    rows: list[list[Value]]
    note: str = ""
    subjects: list[str] = []


class Decision(msgspec.Struct, frozen=True, rename="camel"):
    """A decision about one pod, node by node.

    Nodes and groups are indices. `groups` are the nodes' verdicts, success first; `group_of` has that of each node.
    `scores` are the weighted scores by plugin of the nodes in `rated`, best first. `rejected` says by node why
    preemption does not help. `taken` is the chosen or nominated node, -1 for none, and `role` names which of them.
    `counts` is the number of nodes by verdict, if `nodes` does not contain all. `criteria` compare the candidates; None
    means kube-scheduler's.
    """

    pod: str
    taken: int
    nodes: list[str]
    groups: list[str]
    group_of: list[int]
    fits: bool
    plugins: list[str]
    rated: list[int]
    scores: list[list[int]]
    totals: list[int]
    candidates: list[Candidate]
    rejected: list[tuple[int, str]]
    decided_by: str
    role: str
    counts: list[int] | None = None
    criteria: list[str] | None = None


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """A node where preemption would help: its victims, the most important first, and the number of PDB violations.

    `priority` is the victims' highest one, None if unknown. `costs` are the values of stated criteria.
    """

    node: int
    violations: int
    priority: int | None
    count: int
    victims: list[str]
    costs: list[str] | None = None


class Disruptions(msgspec.Struct, frozen=True, rename="camel"):
    """Disruptions over time, with a row for each workload, beneficiaries first.

    Times are in seconds after `start`, which counts from 1970 if `is_dated`; the picture covers `span`. Each disruption
    has its `row`, the index of its cause, the times when it began (`at`), when the victim was `gone` and when the
    replacement was `ready` (None: not yet), the row of its `beneficiary` (-1 for none), whether it was in `vain`, the
    next in its chain (`following`, -1 for none), and lines of text about it (`lines`), its pod first.
    """

    rows: list[str]
    causes: list[str]
    is_dated: bool
    start: float
    span: float
    row: list[int]
    cause: list[int]
    at: list[float]
    gone: list[float | None]
    ready: list[float | None]
    beneficiary: list[int]
    vain: list[bool]
    following: list[int]
    lines: list[list[str]]
    note: str = ""


class Runs(msgspec.Struct, frozen=True, rename="camel"):
    """The runs of a sweep: the index of each run's settings, its seed, and its figures; None for a missing figure."""

    settings: list[str]
    figures: list[str]
    places: list[int]
    seeds: list[int]
    values: list[list[float | None]]


class AnswerPicture(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A page: the `command` that made it, and its answer in one line (`headline`).

    `facts` and `tables` come before the picture, `more` after it. `changes` are required changes, under a title. Of
    more than two `stories`, two are shown at a time.
    """

    command: str
    headline: str
    facts: list[str] = []
    tables: list[Table] = []
    more: list[Table] = []
    stories: list[RunTimeline] = []
    decision: Decision | None = None
    runs: Runs | None = None
    disruptions: Disruptions | None = None
    changes: list[str] = []
    changes_title: str = ""
    caveats: list[str] = []
    text: str = ""
    schema_version: int = SCHEMA_VERSION


def caveat_texts(caveats: tuple[Caveat, ...]) -> list[str]:
    """Return the messages of the caveats."""
    return [escape(caveat.message, _LONGEST) for caveat in caveats]


def drawn(sections: Iterable[Section]) -> list[Table]:
    """Return the tables of the sections that have rows; a row is about the node, pod or workload that begins it."""
    found = []
    for section in sections:
        width = max((len(row) for row in section.rows), default=0)
        rows = [[part if isinstance(part, int) else text_of(part) for part in row] for row in section.rows]
        found += table_of(
            section.title,
            section.headings or [""] * width,
            [[*row, *[""] * (width - len(row))] for row in rows],
            section.rest,
            [subject for row in section.rows if (subject := _subject(row[0]))],
        )
    return found


def table_of(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[Value]], note: str = "", subjects: Sequence[str] = ()
) -> list[Table]:
    """Return the table of the rows, with harmless text; empty without rows."""
    cells = [[escape(value, _LONGEST) if isinstance(value, str) else value for value in row] for row in rows]
    return [Table(title, list(headings), cells, note, list(subjects))] if rows else []


def _subject(part: Part) -> str:
    """Return what a click on a row that begins with the part selects; a pod without a controller is a workload."""
    if not isinstance(part, Name):
        return ""
    name = escape(part.name, _LONGEST)
    if part.kind == WORKLOADS and name.startswith(_POD):
        return f"pod {name.removeprefix(_POD)}"
    return f"{part.kind.removesuffix('s')} {name}"


_ENTRY = "main"
_PLAIN_BYTES = 64 * 1024
"""The maximum size of data that is written as readable text; larger data is compressed."""

_LONGEST_TITLE = 500
# Characters that could end the block of data, or begin markup in it.
_MARKUP = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Podium">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="page"><h1>{title}</h1><noscript><p>This picture is drawn by a script, and scripts are switched off.</p>\
</noscript></main>
<script type="application/json" id="data" data-form="{form}">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def html_file(title: str, picture: msgspec.Struct) -> str:
    """Return the picture as a document; equal pictures have equal texts."""
    try:
        encoded = msgspec.json.encode(picture)
    except (OverflowError, UnicodeEncodeError):
        # Numbers of more than 64 bits, and halves of surrogate pairs.
        encoded = json.dumps(msgspec.to_builtins(picture), separators=(",", ":")).encode()
    is_plain = len(encoded) <= _PLAIN_BYTES
    data = encoded if is_plain else base64.b64encode(zlib.compress(encoded, 6, wbits=31))
    style, script = page_style(), page_script()
    return _DOCUMENT.format(
        policy=(
            f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
        ),
        title=html.escape(escape(title, _LONGEST_TITLE)),
        style=style,
        form="json" if is_plain else "gzip",
        data=data.decode().translate(_MARKUP),
        script=script,
    )


@cache
def page_script() -> str:
    """Return the page's modules as one script."""
    text = bundle(_ENTRY, lambda name: page_file(f"{name}.js"))
    if "</script" in text.lower():
        raise AssertionError("the script would end its own block")
    return text


@cache
def page_style() -> str:
    """Return the page's style sheet."""
    return page_file("page.css")


def page_file(name: str) -> str:
    """Return the text of one of the page's files."""
    return resources.files("podium.app.reporting").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) ([A-Za-z_$][\w$]*))", re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """Return the module `entry` and its dependencies as one script; `read` returns the text of a module by name.

    Raises ValueError for an unknown form of import or export, and for circular imports.
    """
    done: dict[str, str] = {}
    _add(entry, read, done, ())
    return '"use strict";\n' + "".join(done.values())


def _add(name: str, read: Callable[[str], str], done: dict[str, str], needed_by: tuple[str, ...]) -> None:
    """Append a module after its dependencies."""
    if name in done:
        return
    if name in needed_by:
        raise ValueError(f"the imports of modules are circular: {' > '.join((*needed_by, name))}")
    text = read(name)
    for _, other in _IMPORT.findall(text):
        _add(other, read, done, (*needed_by, name))
    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub(r"const {\1} = module_\2;\n", text))
    strange = _UNKNOWN.search(body)
    if strange is not None:
        raise ValueError(f"{name}.js: {strange[0]!r} is a form of import or export that is not known here")
    done[name] = f"const module_{name} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();\n"
