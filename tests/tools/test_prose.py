"""Docstrings, comments and documents are written in plain technical English."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = re.compile(r"\b(whom|whoever|nobody|somebody|told|tells of|heeds|goes by|be it)\b", re.IGNORECASE)
CODE = re.compile(r"^```.*?^```|``[^`]*``|`[^`]*`", re.DOTALL | re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


PACKAGES = sorted(path for path in (ROOT / "src/podium").iterdir() if any(path.glob("**/*.py")))
OTHERS = [ROOT / name for name in ("examples", "tests", "tools")]
MODULES = sorted((ROOT / "src/podium").glob("*.py"))
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
MANIFESTS = sorted((ROOT / "examples").rglob("*.yaml"))


def forbidden_in(text: str) -> list[str]:
    """Return the forbidden words of a text, without code and quoted output."""
    return FORBIDDEN.findall(CODE.sub("", text))


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def findings(module: Path) -> list[str]:
    source = module.read_text(encoding="utf-8")
    # Parsing takes long, and few modules have such a word even in their code.
    prose = prose_of(source) if FORBIDDEN.search(source) else ()
    return [f"{name_of(module)}:{line}: {word}" for line, text in prose for word in forbidden_in(text)]


@pytest.mark.parametrize("package", [*PACKAGES, *OTHERS], ids=name_of)
def test_docstrings_and_comments_of_packages_avoid_the_forbidden_words(package: Path) -> None:
    modules = [module for module in sorted(package.rglob("*.py")) if module != Path(__file__)]
    assert [found for module in modules for found in findings(module)] == []


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_docstrings_and_comments_of_modules_avoid_the_forbidden_words(module: Path) -> None:
    assert findings(module) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_documents_avoid_the_forbidden_words(document: Path) -> None:
    assert forbidden_in(document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=name_of)
def test_comments_of_example_manifests_avoid_the_forbidden_words(manifest: Path) -> None:
    assert [line for line in manifest.read_text(encoding="utf-8").splitlines() if forbidden_in(line)] == []


@pytest.mark.parametrize(
    "source",
    ['"""What nobody asks for."""\n', "# The scheduler is told of it.\n"],
)
def test_forbidden_words_are_found_in_docstrings_and_comments(source: str) -> None:
    assert [word for _, text in prose_of(source) for word in forbidden_in(text)]


@pytest.mark.parametrize("source", ['told = "nobody"\n', '"""Return ``told``, or `nobody`."""\n'])
def test_code_is_not_prose(source: str) -> None:
    assert [word for _, text in prose_of(source) for word in forbidden_in(text)] == []
