"""The wheel and the kubectl plugin: their contents, and that they run."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from tests.app.processes import run
from tools import krew, sbom

KUBECTL = shutil.which("kubectl")
ROOT = Path(__file__).parents[2]
PLUGIN = "import sys; from podium.app.console import command; command.{}()"


def test_the_wheel_holds_the_program_and_its_commands(tmp_path: Path) -> None:
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))

    with zipfile.ZipFile(made) as wheel:
        names = wheel.namelist()
        commands = wheel.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert "podium/app/console/command.py" in names
    examples = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*.*") if path.suffix != ".pyc"}
    assert {f"podium/{path}" for path in examples} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"podium"}
    assert not any(name.endswith((".pyc", ".so")) for name in names)
    assert "kubectl-podium = " in commands
    assert Path(made).name.endswith("-py3-none-any.whl")


def test_the_same_sources_give_the_same_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    wheels = []
    for folder in ("a", "b"):
        (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / folder))
        wheels.append(hashlib.sha256(Path(made).read_bytes()).hexdigest())

    assert wheels[0] == wheels[1]


def test_the_image_context_suffices_to_build_the_wheel(tmp_path: Path) -> None:
    lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    given = [line.split()[1:] for line in lines if line.startswith("COPY ") and "--from" not in line]
    context = tmp_path / "source"
    for *sources, target in given:
        for source in sources:
            place = context / target / source if target.endswith("/") else context / target
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(ROOT / source, place)

    (made,) = WheelBuilder(str(context)).build(directory=str(tmp_path / "built"))

    assert zipfile.is_zipfile(made)


def test_the_wheel_names_all_that_it_brings_along_as_it_is_locked(tmp_path: Path) -> None:
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))

    with zipfile.ZipFile(made) as wheel:
        (name,) = (name for name in wheel.namelist() if "/sboms/" in name)
        listed = json.loads(wheel.read(name))
    assert sbom.main(["--check"]) == 0
    assert listed == sbom.document()
    assert {"aiohttp", "msgspec", "numpy"} <= {component["name"] for component in listed["components"]}


def test_every_command_of_the_package_exists() -> None:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        scripts = tomllib.load(stream)["project"]["scripts"]

    assert set(scripts) == {"podium", "kubectl-podium", "kubectl_complete-podium"}
    for place in scripts.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_as_a_plugin_it_calls_itself_what_kubectl_calls_it_and_reads_the_current_cluster(tmp_path: Path) -> None:
    helped = run("explain", "--help", code=PLUGIN.format("kubectl_plugin"))
    asked = run(
        "explain", "web", code=PLUGIN.format("kubectl_plugin"), KUBECONFIG=str(tmp_path / "none"), HOME=str(tmp_path)
    )

    assert helped.stdout.startswith("Usage: kubectl podium explain ")
    assert asked.returncode == 1
    assert "podium: error: no cluster is known" in asked.stderr or str(tmp_path / "none") in asked.stderr


@pytest.mark.parametrize(
    ("words", "offered", "directive"),
    [
        (["ex"], {"examples", "explain", "exporter"}, ":4"),
        (["simulate", "--sp"], {"--speed"}, ":4"),
        (["explain", "web", "-f", ""], set(), ":0"),
    ],
)
def test_shell_completion_offers_the_next_words_to_kubectl(words: list[str], offered: set[str], directive: str) -> None:
    *lines, last = run(*words, code=PLUGIN.format("kubectl_completion")).stdout.splitlines()

    assert {line.partition("\t")[0] for line in lines} == offered
    assert last == directive


def test_the_manifest_for_krew_names_the_archive_as_it_is() -> None:
    content = krew.archive()
    manifest = yaml.safe_load(krew.MANIFEST.read_text())

    assert krew.MANIFEST.read_text() == krew.manifest(hashlib.sha256(content).hexdigest())
    assert krew.archive() == content
    assert f"version={krew.version()}\n" in (ROOT / "deploy" / "krew" / "kubectl-podium").read_text()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert {entry.name: entry.mode for entry in tar} == {"kubectl-podium": 0o755, "LICENSE": 0o644}
    for platform in manifest["spec"]["platforms"]:
        assert {file["from"] for file in platform["files"]} >= {platform["bin"]}


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_the_plugin_of_the_archive_says_what_it_needs(tmp_path: Path) -> None:
    script = str(ROOT / "deploy" / "krew" / "kubectl-podium")
    shell = shutil.which("sh")
    assert shell is not None

    bare = subprocess.run([shell, script], capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False)
    (tmp_path / "uvx").write_text(f'#!{shell}\necho "$@"\n')
    (tmp_path / "uvx").chmod(0o755)
    found = subprocess.run(
        [shell, script, "explain", "a b"], capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False
    )

    assert (bare.returncode, bare.stderr[:23]) == (1, "kubectl podium: needs u")
    assert found.stdout == f"--quiet --from podium=={krew.version()} kubectl-podium explain a b\n"


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_kubectl_finds_the_plugin_and_asks_it_for_completions(tmp_path: Path) -> None:
    assert KUBECTL is not None
    for name, function in (("kubectl-podium", "kubectl_plugin"), ("kubectl_complete-podium", "kubectl_completion")):
        script = tmp_path / name
        script.write_text(f"#!{sys.executable}\nfrom podium.app.console import command\ncommand.{function}()\n")
        script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)

    def kubectl(*words: str) -> str:
        made = subprocess.run([KUBECTL, *words], capture_output=True, text=True, env=environment, check=True)
        return made.stdout

    assert kubectl("podium", "delete", "--help").startswith("Usage: kubectl podium delete ")
    assert kubectl("__complete", "podium", "expl").splitlines()[0].startswith("explain")
