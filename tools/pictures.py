"""The pictures of documents: browser screenshots of commands with `-o html`.

A recipe has one, of its first command; a page in `docs` any number, each of the preceding command. `.venv/bin/python
tools/pictures.py [PICTURE]...` draws the named ones, such as `drain`, or all, into `docs/pictures`. Others are views of
the web page of `podium up`. A picture's description is its command, which a test checks. It needs Chromium and
Playwright; since results depend on their versions and on fonts, pictures are reviewed, not compared.
"""

from __future__ import annotations

import importlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.docs.blocks import blocks_of  # noqa: E402
from tests.docs.shell import Shell, entered  # noqa: E402

RECIPES = ROOT / "docs" / "cookbook"
PAGES = (ROOT / "docs" / "preemption.md",)
FOLDER = ROOT / "docs" / "pictures"
_ENTRY = re.compile(r"^\$ (?P<command>podium .*)$|\]\(pictures/(?P<picture>[^)]+)\.png\)", re.MULTILINE)
LARGEST_BYTES = 60_000
VIEWS = {"now": ("podium up -f examples/cookbook/pending.yaml", "#now", "#losses .problem")}
"""The pictures of the web page of `podium up`: the command, the place in the page, and what it waits for."""
DESCRIPTION = b"Description"
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_WIDTH, _MOST_COLOURS, _MARGIN = 1100, 128, 4
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# A run is shown from its legend down, an answer from its headline down.
_CLIP = """() => {
  const box = (name) => document.querySelector(name).getBoundingClientRect();
  const tables = [...document.querySelectorAll(".tables > *")].map((each) => each.getBoundingClientRect());
  const parts = document.querySelector(".stories") ? [box(".legend"), box(".stories")] : [box("header"), ...tables];
  return [Math.min(...parts.map((part) => part.top)), Math.max(...parts.map((part) => part.bottom))];
}"""


def commands() -> dict[str, str]:
    """Return the command of each picture, by the picture's name."""
    return {**of_recipes(), **of_pages(), **{name: command for name, (command, *_) in VIEWS.items()}}


def of_pages() -> dict[str, str]:
    """Return the last command before each picture in a page."""
    found = {}
    for page in PAGES:
        command = ""
        for entry in _ENTRY.finditer(page.read_text()):
            if entry["picture"]:
                found[entry["picture"]] = command
            else:
                command = entry["command"]
    return found


def of_recipes() -> dict[str, str]:
    """Return the first command of each recipe, by the recipe's name."""
    found = {}
    for recipe in sorted(RECIPES.glob("*.md")):
        (command, _), *_ = (each for block in blocks_of(recipe, "console") for each in entered(block.text))
        found[recipe.stem] = " ".join(command.split())
    return found


def draw(browser: Any, page_file: Path) -> bytes:
    """Return a screenshot of the most informative part of a page."""
    page = browser.new_page(viewport={"width": _WIDTH, "height": 900}, color_scheme="light")
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-drawn]", state="attached")
    top, bottom = page.evaluate(_CLIP)
    page.set_viewport_size({"width": _WIDTH, "height": int(bottom) + _MARGIN})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    y = max(top - _MARGIN, 0)
    clip = {"x": 0, "y": y, "width": _WIDTH, "height": bottom + _MARGIN - y}
    drawn: bytes = page.screenshot(clip=clip, full_page=True)
    page.close()
    return drawn


def draw_view(browser: Any, name: str) -> bytes:
    """Return a screenshot of a view of the page of `podium up`."""
    command, place, selector = VIEWS[name]
    with tempfile.TemporaryDirectory() as scratch:
        kubeconfig = str(Path(scratch) / "kubeconfig")
        arguments = [*command.removeprefix("podium ").split(), "--port", "0", "--write-kubeconfig", kubeconfig]
        process = subprocess.Popen([sys.executable, "-m", "podium", *arguments], cwd=ROOT, stdout=subprocess.PIPE)
        try:
            lines = iter(process.stdout or ())
            url = next(line.decode().split()[-1] for line in lines if b"in a browser" in line)
            page = browser.new_page(viewport={"width": _WIDTH, "height": 850}, color_scheme="light")
            page.goto(url + place)
            page.wait_for_selector(selector)
            drawn: bytes = page.screenshot()
            page.close()
        finally:
            process.terminate()
            process.communicate()
    return drawn


def with_few_colours(png: bytes, description: str) -> bytes:
    """Return the picture with a palette, a third of the size, and with its command as description."""
    pixels = pixels_of(png)
    height, width, _ = pixels.shape
    # Text has a thousand shades, of which far fewer are distinguishable.
    flat = (pixels.reshape(-1, 3) >> 3).astype(np.uint32)
    codes = flat[:, 0] << 10 | flat[:, 1] << 5 | flat[:, 2]
    kinds, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    order = np.lexsort((kinds, -counts.astype(np.int64)))[:_MOST_COLOURS]
    shades = np.stack([kinds >> 10 & 31, kinds >> 5 & 31, kinds & 31], axis=1).astype(np.int32)
    nearest = np.abs(shades[:, None, :] - shades[order][None, :, :]).sum(axis=2).argmin(axis=1).astype(np.uint8)
    palette = (shades[order] << 3 | shades[order] >> 2).astype(np.uint8)
    rows = nearest[inverse].reshape(height, width)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    text = DESCRIPTION + b"\0" + description.encode("latin-1")
    chunks = ((b"IHDR", header), (b"tEXt", text), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(data, 9)))
    return SIGNATURE + b"".join(chunk(kind, body) for kind, body in (*chunks, (b"IEND", b"")))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def chunks_of(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return the chunks of a PNG with their kinds. Raises ValueError for other data."""
    if not png.startswith(SIGNATURE):
        raise ValueError("this is no PNG")
    place = len(SIGNATURE)
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        yield kind, png[place + 8 : place + 8 + length]
        place += length + 12


def description_of(png: bytes) -> str:
    """Return a picture's description, "" without one."""
    texts: Mapping[bytes, bytes] = {
        body.partition(b"\0")[0]: body.partition(b"\0")[2] for kind, body in chunks_of(png) if kind == b"tEXt"
    }
    return texts.get(DESCRIPTION, b"").decode("latin-1")


def pixels_of(png: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the pixels of a PNG of 8 bits a channel without interlacing: rows, columns, and red, green, blue."""
    parts: dict[bytes, bytes] = {}
    for kind, body in chunks_of(png):
        parts[kind] = parts.get(kind, b"") + body
    width, height, bits, colours = struct.unpack_from(">IIBB", parts[b"IHDR"])
    channels = {2: 3, 3: 1, 6: 4}[colours]
    if bits != 8:
        raise ValueError(f"{bits} bits a channel")
    raw = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    above = np.zeros(width * channels, np.uint8)
    rows = np.empty((height, width * channels), np.uint8)
    for place, row in enumerate(raw):
        above = rows[place] = _unfiltered(int(row[0]), row[1:], above, channels)
    if colours == 3:
        palette = np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)
        return palette[rows]
    return rows.reshape(height, width, channels)[:, :, :3]


def _unfiltered(
    filter_: int, row: np.ndarray[Any, np.dtype[np.uint8]], above: np.ndarray[Any, np.dtype[np.uint8]], step: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a row without its filter (PNG specification, 9.2)."""
    if filter_ == 0:
        return row
    if filter_ == 2:
        return row + above
    done, up = bytearray(len(row) + step), bytes(step) + above.tobytes()
    for place, value in enumerate(row.tobytes(), step):
        left, over, corner = done[place - step], up[place], up[place - step]
        guess = left if filter_ == 1 else (left + over) // 2 if filter_ == 3 else _paeth(left, over, corner)
        done[place] = (value + guess) & 255
    return np.frombuffer(bytes(done[step:]), np.uint8)


def _paeth(left: int, over: int, corner: int) -> int:
    near_left, near_over, near_corner = abs(over - corner), abs(left - corner), abs(left + over - 2 * corner)
    if near_left <= near_over and near_left <= near_corner:
        return left
    return over if near_over <= near_corner else corner


def main(names: Sequence[str]) -> int:
    """Draw the pictures of the named recipes, or all; return 1 if one is too large."""
    # Tests read pictures without Playwright.
    sync_playwright = importlib.import_module("playwright.sync_api").sync_playwright
    FOLDER.mkdir(exist_ok=True)
    code = 0
    with (
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as scratch,
        pytest.MonkeyPatch.context() as patch,
    ):
        shell = Shell(patch, ROOT)
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        for name, command in commands().items():
            if names and name not in names:
                continue
            if name in VIEWS:
                drawn = draw_view(browser, name)
            else:
                page_file = Path(scratch) / "page.html"
                page_file.write_text(shell.run(f"{command} -o html"))
                drawn = draw(browser, page_file)
            picture = with_few_colours(drawn, command)
            (FOLDER / f"{name}.png").write_bytes(picture)
            print(f"docs/pictures/{name}.png: {len(picture):,} bytes")
            code = code or int(len(picture) > LARGEST_BYTES)
        browser.close()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
