"""The HTML file of a picture: data, style and script in one document.

Its Content-Security-Policy allows only its own script and style, by their hashes. The data is in a block that browsers
do not run, and is never written as markup. Large data is compressed.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Callable
from functools import cache
from importlib import resources

import msgspec

from podium.api.errors import escape

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
