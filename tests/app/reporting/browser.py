"""A real browser for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import GUARD_SECONDS

# The first of these that is installed. The headless shell has the same engine, and starts
# a page in a third of the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PATIENCE_MS = 1000 * GUARD_SECONDS


@contextmanager
def open_browser() -> Iterator[Any]:
    """Provide a browser; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        # Inside a container, and as root, Chromium cannot have a sandbox; it is shown nothing but what tests wrote.
        # One renderer is enough; by default the browser starts a second one for each context in advance.
        arguments = ["--no-sandbox", "--renderer-process-limit=1"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page in a browser, with what it complained of and what it asked the network for."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1200, "height": 800}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-drawn]", state="attached")
        self.frame()

    def ask(self, what: str) -> Any:
        """Return the value of an expression in the page."""
        return self.page.evaluate(what)

    def frame(self) -> None:
        """Let what has been asked for be drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def place_of(self, pod: str, *, waits: bool = False, view: int = 0) -> tuple[float, float]:
        """Return where the middle of a pod's bar is on the screen."""
        found = self.ask(
            f"""(() => {{
                const view = podium.stories.views[{view}], name = {pod!r};
                const [pod] = view.story.find({{ kind: "pod", name }}).pods;
                const place = view.placeOf(pod, {str(waits).lower()}), box = view.element.getBoundingClientRect();
                return [box.left + (place.left + place.right) / 2, box.top + place.top + place.height / 2];
            }})()"""
        )
        return found[0], found[1]

    def tip(self) -> str:
        """Return the tooltip under the pointer."""
        return str(self.page.inner_text(".tip"))

    def press(self, *keys: str) -> None:
        """Press keys one after another, in the first view."""
        self.page.focus(".view")
        for key in keys:
            self.page.keyboard.press(key)
        self.frame()
