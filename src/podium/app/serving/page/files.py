"""The files of the page: what is in each, and the headers with which they are sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PREFIX = "/ui/"
"""Where the page is."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""What the page may do: run the scripts that come from here, ask here, and nothing else.

No text becomes markup in it: a script that tries to write some is stopped by the browser (trusted types).
"""

HEADERS: tuple[tuple[str, str], ...] = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""What every reply of the page says."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FIRST = "index.html"
# The folders whose files are served, and below which path.
_FOLDERS: Mapping[str, Path] = {
    "": Path(__file__).parent / "web",
    # What pictures are drawn by draws the cluster as it changes, too.
    "drawing/": Path(__file__).parents[2] / "reporting" / "page",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page; ``etag`` changes with what is in it."""

    body: bytes
    content_type: str
    etag: str


@cache
def files() -> Mapping[str, File]:
    """The files by their paths. There are no others, whatever is asked for."""
    found: dict[str, File] = {}
    for below, folder in _FOLDERS.items():
        for path in sorted(folder.iterdir()):
            if path.suffix in _TYPES:
                body = path.read_bytes()
                etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
                found[f"{PREFIX}{below}{path.name}"] = File(body, _TYPES[path.suffix], etag)
    found[PREFIX] = found[PREFIX + _FIRST]
    return found
