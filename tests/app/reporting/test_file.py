"""A picture in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from typing import Any

from podium.api.basis import Caveat
from podium.app.reporting.picture import AnswerPicture, caveat_texts, html_file, page_file, page_script, page_style

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\u202e&amp;\x1b[31m"


def picture(**changes: Any) -> AnswerPicture:
    return AnswerPicture(command="simulate", headline="1m: 1 bound", **changes)


def data_of(page: str) -> Any:
    """Return what the page's block of data holds."""
    found = re.search(r'<script type="application/json" id="data" data-form="(\w+)">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    if found[1] == "json":
        return json.loads(found[2])
    return json.loads(zlib.decompress(base64.b64decode(found[2]), wbits=31))


def test_a_hostile_name_is_data_and_never_markup() -> None:
    page = html_file(HOSTILE, picture(facts=[HOSTILE]))

    assert page.count("<script") == page.count("</script>") == 2
    assert "onerror=alert(2)>" not in page
    assert data_of(page)["facts"] == [HOSTILE]


def test_misleading_characters_in_files_are_escaped() -> None:
    assert caveat_texts((Caveat("x", "a\u202eb\x1b[31m", 1),)) == ["a\\u202eb\\x1b[31m"]


def test_much_data_is_compressed_and_the_same_picture_is_the_same_file() -> None:
    facts = [f"{number}: {HOSTILE}" for number in range(2_000)]

    page = html_file("much", picture(facts=facts))

    assert 'data-form="gzip"' in page
    assert data_of(page)["facts"] == facts
    assert len(page) < len(html_file("", picture())) + 40_000
    assert page == html_file("much", picture(facts=facts))


def test_halves_of_characters_do_not_stop_a_page() -> None:
    assert data_of(html_file("half", picture(facts=["a\ud800b"])))["facts"] == ["a\ud800b"]


def test_the_page_may_run_its_own_script_and_nothing_else() -> None:
    page = html_file("x", picture())

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for name, text in (("script", page_script()), ("style", page_style())):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}';" in policy[1]
    assert policy[1].startswith("default-src 'none';")
    assert "unsafe" not in policy[1]


def test_the_page_asks_for_nothing_and_writes_no_markup() -> None:
    script = page_script()

    for what in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest"):
        assert what not in script
    for what in ("http://", "https://", "url(", "@import"):
        assert what not in script + page_style()


def test_a_page_without_data_is_small() -> None:
    assert len(html_file("x", picture()).encode()) < 200_000


def test_every_file_of_the_page_is_part_of_it() -> None:
    assert '"use strict"' in page_script()
    assert "start()" in page_file("main.js")
