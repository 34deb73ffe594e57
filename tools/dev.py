"""Podium's development commands: `python3 tools/dev.py COMMAND`.

Needs only the standard library. Requirements of a command are installed into `.venv` from the lock files in
`requirements/`, with all hashes checked, and again only when those files change. A command exits with the code of the
first failed step.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
OLDEST_PYTHON = (3, 11)
# Each set of requirements includes the previous one.
REQUIREMENTS = ("run", "dev")
LINTERS: dict[str, tuple[str, ...]] = {
    "ruff check": ("-m", "ruff", "check", "."),
    "ruff format --check": ("-m", "ruff", "format", "--check", "."),
    "mypy": ("-m", "mypy"),
    # import-linter has no `python -m` form, and the first line of its script breaks when a checkout moves.
    "lint-imports": ("-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-logo"),
}


def demo(_: argparse.Namespace) -> int:
    """Install Podium and run an example simulation."""
    simulate = ("simulate", "-f", "examples/starvation-1.yaml")
    return set_up("run") or step("podium " + " ".join(simulate), PYTHON.with_name("podium"), *simulate)


def test(options: argparse.Namespace) -> int:
    """Run pytest with further arguments; without any, run all tests on all cores."""
    return set_up("dev") or step("pytest", PYTHON, "-m", "pytest", *(options.others or ("-n", "auto")))


def lint(_: argparse.Namespace) -> int:
    """Run ruff, mypy and import-linter, each even if an earlier one failed."""
    code = set_up("dev")
    if code:
        return code
    codes = {title: step(title, PYTHON, *command) for title, command in LINTERS.items()}
    failed = {title: code for title, code in codes.items() if code}
    print(f"lint: failed: {', '.join(failed)}" if failed else "lint: passed", flush=True)
    return next(iter(failed.values()), 0)


def check(options: argparse.Namespace) -> int:
    """Run lint, then test."""
    return lint(options) or test(options)


def fuzz(options: argparse.Namespace) -> int:
    """Run the tests marked `fuzz`, and all property tests with all their examples; further arguments are pytest's."""
    title = f"pytest -m 'fuzz or hypothesis', seed {options.seed}, {options.runs} runs"
    chosen = {"PODIUM_FUZZ_SEED": str(options.seed), "PODIUM_FUZZ_RUNS": str(options.runs)}
    # hypothesis marks its own tests so.
    command = (PYTHON, "-m", "pytest", "-m", "fuzz or hypothesis", f"--hypothesis-seed={options.seed}")
    return set_up("dev") or step(title, *command, *options.others, **chosen)


def lock(options: argparse.Namespace) -> int:
    """Update the lock files with uv; further arguments are uv's, such as --upgrade."""
    uv = shutil.which("uv", path=os.pathsep.join((str(PYTHON.parent), os.environ.get("PATH", os.defpath))))
    if uv is None:
        sys.exit("lock needs uv: install it (for example with `pipx install uv`) and try again.")
    # One version of a package for all Pythons, and a file that does not depend on its author's machine.
    form = ("--universal", "--python-version", "3.11", "--fork-strategy", "fewest", "--generate-hashes")
    header = ("--no-annotate", "--custom-compile-command", "python3 tools/dev.py lock")
    compile_ = (uv, "pip", "compile", "--quiet", *form, *header)
    run, dev = "requirements/run.txt", "requirements/dev.txt"
    sources = ("pyproject.toml", "--group", "build")
    return step(run, *compile_, *options.others, *sources, "--output-file", run) or step(
        dev, *compile_, *options.others, *sources, "--group", "dev", "--constraint", run, "--output-file", dev
    )


def audit(_: argparse.Namespace) -> int:
    """Check the locked packages for known vulnerabilities; fail if that is not possible."""
    code = set_up("dev")
    ignored = [word for id_ in accepted_vulnerabilities() for word in ("--ignore-vuln", id_)]
    command = ("-m", "pip_audit", "--strict", "--disable-pip", "--require-hashes", "--progress-spinner", "off")
    for name in REQUIREMENTS:
        file = f"requirements/{name}.txt"
        code = code or step(f"pip-audit {file}", PYTHON, *command, "--requirement", file, *ignored)
    return code


def accepted_vulnerabilities() -> dict[str, str]:
    """Return the ids of accepted vulnerabilities with reasons."""
    lines = (ROOT / "requirements" / "accepted-vulnerabilities.txt").read_text().splitlines()
    entries = (line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))
    accepted = {id_: " ".join(reason) for id_, *reason in entries}
    for id_, reason in accepted.items():
        if not reason:
            sys.exit(f"requirements/accepted-vulnerabilities.txt: {id_} is accepted without a reason.")
    return accepted


def build(_: argparse.Namespace) -> int:
    """Build wheel and source archive into `dist/` twice; fail if the results differ."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    with tempfile.TemporaryDirectory() as again:
        code = set_up("dev") or build_into(ROOT / "dist") or build_into(Path(again))
        if not code and file_digests(ROOT / "dist") != file_digests(Path(again)):
            print("The same sources gave other bytes the second time.", file=sys.stderr)
            return 1
    return code


def site(options: argparse.Namespace) -> int:
    """Build the documents as a site into `site/` and check its links; --publish pushes it to a remote."""
    build_ = ("-m", "tools.site.build", ROOT / "site")
    code = set_up("dev") or step("build the site", PYTHON, *build_)
    if code or not options.publish:
        return code
    return step("publish the site", PYTHON, "-m", "tools.site.publish", ROOT / "site", options.publish)


def build_into(folder: Path) -> int:
    """Build wheel and source archive, dated with the newest commit."""
    command = ("git", "log", "-1", "--format=%ct")
    time_s = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()
    built = (PYTHON, "-m", "hatchling", "build", "--directory", folder)
    return step("hatchling build", *built, SOURCE_DATE_EPOCH=time_s)


def file_digests(folder: Path) -> dict[str, str]:
    """Return the digests of a folder's files, by name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def set_up(requirements: str) -> int:
    """Install the locked requirements and Podium into `.venv` if they are not."""
    usable = is_usable()
    wider = REQUIREMENTS[REQUIREMENTS.index(requirements) :]
    if usable and any(stamp(name).is_file() and stamp(name).read_text() == digest(name) for name in wider):
        return 0
    code = (0 if usable else make_environment()) or install(requirements)
    if code:
        print("Setting up .venv failed; the message above says why.", file=sys.stderr)
    return code


def is_usable() -> bool:
    """Return whether `.venv` has a working and recent interpreter with pip."""
    probe = f"import sys, pip; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    try:
        return subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_environment() -> int:
    """Create `.venv` with the interpreter that runs this program."""
    this, oldest = (".".join(map(str, version)) for version in (sys.version_info[:2], OLDEST_PYTHON))
    if sys.version_info[:2] < OLDEST_PYTHON:
        sys.exit(f"Podium needs Python {oldest} or newer, and this is {this}: run tools/dev.py with a newer one.")
    if Path(sys.prefix) == ENVIRONMENT:
        sys.exit("This Python lives in .venv, which must be made anew: run tools/dev.py with another one.")
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            f"This Python cannot make virtual environments, as its module ensurepip is missing. Install it "
            f"(Debian and Ubuntu: `apt install python{this}-venv`), or run tools/dev.py with another Python."
        )
    return step(f"make .venv with Python {this}", sys.executable, "-m", "venv", "--clear", ENVIRONMENT)


def install(requirements: str) -> int:
    """Install a set of locked requirements, then Podium itself, editable, from this folder."""
    for name in REQUIREMENTS:
        stamp(name).unlink(missing_ok=True)
    pip = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    code = 0
    for name in REQUIREMENTS[: REQUIREMENTS.index(requirements) + 1]:
        # Of the tools' modules few are ever imported; Python compiles those then.
        compiled = () if name == "run" else ("--no-compile",)
        locked = ("--require-hashes", "--only-binary", ":all:", "--requirement", f"requirements/{name}.txt")
        code = code or step(f"install requirements/{name}.txt", *pip, *compiled, *locked)
    code = code or step("install podium", *pip, "--no-deps", "--no-index", "--no-build-isolation", "--editable", ".")
    if not code:
        stamp(requirements).write_text(digest(requirements))
    return code


def stamp(requirements: str) -> Path:
    """Return the file with the digest of a completed installation."""
    return ENVIRONMENT / f"podium-{requirements}.stamp"


def digest(requirements: str) -> str:
    """Return a digest of everything that determines an installation: lock file, project file, and path."""
    state = hashlib.sha256(str(ROOT).encode())
    for file in (ROOT / "requirements" / f"{requirements}.txt", ROOT / "pyproject.toml"):
        state.update(file.read_bytes())
    return state.hexdigest()


def step(title: str, *command: str | Path, **environment: str) -> int:
    """Run a program in the project's folder. Return its exit code; 128 + n if signal n ended it."""
    print(f"== {title}", flush=True)
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False).returncode
    return code if code >= 0 else 128 - code


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; `others` are the arguments for the command's program."""
    parser = argparse.ArgumentParser(prog="tools/dev.py", description="Podium's development commands.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (demo, test, lint, check, fuzz, lock, audit, build, site):
        added = commands.add_parser(command.__name__, help=command.__doc__, allow_abbrev=False)
        added.set_defaults(run=command)
        if command is fuzz:
            added.add_argument("--seed", type=int, default=1, help="which runs: the same seed, the same runs")
            added.add_argument("--runs", type=int, default=100, help="how many runs")
        if command is site:
            added.add_argument("--publish", metavar="REMOTE", default="", help="push it as its branch gh-pages")
    options, others = parser.parse_known_args(arguments)
    options.others = others
    if options.others and options.run in (demo, lint, check, audit, build, site):
        parser.error(f"{options.run.__name__} takes no arguments, but was given: {' '.join(options.others)}")
    return options


def main() -> int:
    """Run the command of the command line."""
    options = parse(sys.argv[1:])
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
