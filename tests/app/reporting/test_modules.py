"""The page's modules as one script."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from podium.app.reporting.picture import bundle, page_script


def test_page_modules_follow_their_dependencies_and_appear_once() -> None:
    texts = {
        "main": 'import { b } from "./left.js";\nimport { c } from "./right.js";\nb(c);\n',
        "left": 'import { c } from "./right.js";\nexport function b() { return c; }\n',
        "right": "export const c = 1;\n",
    }

    script = bundle("main", texts.__getitem__)

    assert script.index("module_right = ") < script.index("module_left = ") < script.index("module_main = ")
    assert script.count("module_right = ") == 1
    assert "return { b };" in script


def test_page_modules_may_reuse_private_names() -> None:
    texts = {
        "main": 'import { b } from "./left.js";\nconst MOST = b;\n',
        "left": "const MOST = 1;\nexport const b = MOST;\n",
    }

    script = bundle("main", texts.__getitem__)

    assert script.count("const MOST") == 2
    assert script.count("=> {") == 2


def test_modules_that_need_one_another_in_a_circle_are_refused() -> None:
    texts = {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\n'}

    with pytest.raises(ValueError, match="a > b > a"):
        bundle("a", texts.__getitem__)


def test_every_module_of_the_page_is_part_of_its_script() -> None:
    files = resources.files("podium.app.reporting").joinpath("page").iterdir()
    names = {file.name.removesuffix(".js") for file in files if file.name.endswith(".js")}

    assert set(re.findall(r"^const module_(\w+) = ", page_script(), re.MULTILINE)) == names


@pytest.mark.parametrize(
    "line",
    ['import x from "./a.js";', 'import { x } from "https://example.org/a.js";', "export default 1;", "export { x };"],
)
def test_another_form_of_import_or_export_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not known here"):
        bundle("main", lambda _: f"{line}\n")
