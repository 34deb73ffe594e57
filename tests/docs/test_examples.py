"""The examples in documents run and print what the documents show."""

from __future__ import annotations

import doctest
import itertools
import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from podium.api.input.codec import Document, load_text
from podium.api.kinds import KINDS
from podium.api.node import MAINTENANCE_TIME
from podium.app.console.command import KUBECTL_PLUGIN, podium
from podium.cluster.cluster import Cluster
from podium.controllers.kubelets.pod_run import node_problems
from podium.framework.rescheduling.configuration import read_rescheduler
from podium.framework.rescheduling.policy import PolicyRegistry, make_policies
from podium.framework.settings.configuration import read_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE
from podium.plugins.rescheduling.registry import IN_TREE as POLICIES
from podium.sim.scenario.scenario import read_scenario
from podium.store.api_resources import BUILT_IN
from tests.docs.blocks import DOCUMENTS, ROOT, blocks_of, name_of, prose_of
from tests.docs.shell import Shell, agree, entered
from tools import dev

# No cluster has Podium's own kinds.
OWN_GROUP = "podium.dev"
# Those of `text` blocks are pictures; what is in all others is checked below.
LANGUAGES = {"console", "json", "python", "sh", "text", "toml", "yaml"}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)


@each_document
def test_every_block_says_how_it_is_checked(document: Path) -> None:
    fences = [line for line in document.read_text().splitlines() if line.startswith("```")]
    found = blocks_of(document)

    assert len(fences) == 2 * len(found)
    assert {block.language for block in found} <= LANGUAGES


@each_document
def test_commands_print_what_is_shown(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = Shell(monkeypatch, ROOT)
    for block in blocks_of(document, "console"):
        for command, shown in entered(block.text):
            printed = shell.run(command)

            assert agree(shown, printed), f"{block.place}: `{command}` prints\n{printed}"


@each_document
def test_python_answers_what_is_shown(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for block in blocks_of(document, "python"):
        session = doctest.DocTestParser().get_doctest(block.text, names, block.place, block.place, block.line)
        report: list[str] = []
        # The names of one block are there in the next.
        failures = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
            session, out=report.append, clear_globs=False
        )
        names = session.globs

        assert failures.failed == 0, "".join(report)
        assert session.examples or block.source, f"{block.place}: neither a session nor quoted from a file"


@each_document
def test_quoted_examples_match_their_files(document: Path) -> None:
    for block in blocks_of(document):
        if block.source:
            assert block.text in (ROOT / block.source).read_text(), f"{block.place}: not so in {block.source}"


@each_document
def test_yaml_json_and_toml_are_right(document: Path) -> None:
    for block in blocks_of(document, "json"):
        json.loads(block.text)
    for block in blocks_of(document, "toml"):
        tomllib.loads(block.text)
    for block in blocks_of(document, "yaml"):
        if not block.source:
            for one in load_text(block.text, block.place):
                read(one)


def read(document: Document) -> None:
    """Raise an error for an invalid scenario or configuration; the codec has read everything else."""
    match document.raw["kind"]:
        case "KubeSchedulerConfiguration":
            configuration = read_configuration(document.raw, document.source)
            build_profiles(configuration, Registry(IN_TREE), Cluster())
        case "Scenario":
            read_scenario(document)
        case "ReschedulerConfiguration" | "DeschedulerPolicy":
            settings = read_rescheduler(document.raw, document.source).settings
            make_policies(settings.policies, PolicyRegistry(POLICIES), Cluster())
        case "AdmissionConfiguration" | "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding":
            # Documents quote these for clusters whose API server is kube-apiserver.
            pass
        case kind if document.object is None:
            raise AssertionError(f"{document.source}: Podium does not read the kind {kind}")


@each_document
def test_the_commands_of_a_document_show_what_it_says(
    document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    if "\npodium examples" not in document.read_text():
        (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = Shell(monkeypatch, tmp_path)
    for block in blocks_of(document, "sh"):
        for line in block.text.replace("\\\n", "").splitlines():
            follow(shell, line.partition(" #")[0].rstrip())
    for command in re.findall(r"`(python3 tools/dev\.py [^`]+)`", prose_of(document)):
        follow(shell, command)


# What commands in documents ask about.
FILES = {
    "cluster.json": "{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {pods: 1}}}",
    "web.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: web}]}}",
    "nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nnode-1,4000,8192,1,P100\n",
    "pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time\n"
    "pod-1,1000,1024,1,500,,LS,0,60,0\n",
    "decisions.jsonl": '{"version": 1, "time": "2026-01-31T09:30:00Z", "pod": "default/web", "uid": "u", '
    '"profile": "default-scheduler", "outcome": "schedulable"}\n',
}


def given(values: Any, path: list[str]) -> Any:
    """Return the chart's value at a path."""
    for name in path:
        values = values[name]
    return values


def parse(arguments: list[str], program: str = "podium") -> None:
    """Raise an error for an invalid command line."""
    context = click.Context(podium, info_name=program, **podium.context_settings)
    name, command, rest = podium.resolve_command(context, arguments)
    assert command is not None
    command.make_context(name, rest, parent=context)


def follow(shell: Shell, line: str) -> None:
    """Raise an error for a command that fails, or that cannot be checked."""
    match line.split():
        case ["python3", "tools/dev.py", *arguments]:
            dev.parse(arguments)
        case ["podium", "up", *arguments, "--", program, _, _, _, _] if shutil.which(program) is None:
            parse(["up", *arguments])
        case ["kubectl", "get", kinds, "-A", "-o", "json", ">", "cluster.json"]:
            # kubectl gets nothing where a cluster lacks one of the kinds, as most lack those of alpha versions.
            assert kinds.split(",") == sorted(
                kind.plural
                for of, kind in KINDS.items()
                if kind.group != OWN_GROUP and BUILT_IN[of].served_versions and "alpha" not in kind.version
            )
        case ["podium", *arguments] if {"--context", "--kubernetes", "hour.podium"} & {*arguments} or "=month/" in line:
            # There is no such cluster and no such recordings; the command line is right.
            parse(arguments)
        case ["openssl", "req" | "rand", *_] | ["kubectl", "create", "namespace" | "secret", *_]:
            # They make what the next commands name.
            pass
        case ["podium", "mcp", *arguments]:
            # It serves until its client ends it; the tests of podium mcp run it.
            parse(["mcp", *arguments])
        case ["kubectl" | "helm" | "podman" | "pip" | "pipx" | "uv", *_]:
            check_tool(shlex.split(line))
        case ["uvx", *arguments]:
            follow(shell, shlex.join(arguments))
        case _:
            printed = shell.run(line)
            assert shell.exit_code == 0, f"`{line}` prints\n{printed}"


def check_tool(words: list[str]) -> None:
    """Raise an error for another tool's command that does not match the project's files."""
    match words:
        case ["kubectl", "podium", *arguments]:
            parse(arguments, KUBECTL_PLUGIN)
        case ["kubectl", "apply", "-k", folder]:
            assert (ROOT / folder / "kustomization.yaml").is_file()
        case ["kubectl", "create", "clusterrolebinding", _, role, _]:
            assert f"name: {role.partition('=')[2]}\n" in (ROOT / "deploy/reader/cluster-role.yaml").read_text()
        case ["kubectl", "annotate", "node", _, annotation]:
            name, _, text = annotation.partition("=")
            assert name == MAINTENANCE_TIME
            assert not node_problems({name: text})
        case ["kubectl", "krew", "install", manifest]:
            assert (ROOT / manifest.partition("=")[2]).is_file()
        case ["helm", "install", _, chart, *options]:
            values = yaml.safe_load((ROOT / chart / "values.yaml").read_text())
            settings = [each for option, each in itertools.pairwise(options) if option == "--set"]
            assert settings
            for setting in settings:
                # Raises KeyError for what the chart does not know.
                given(values, setting.partition("=")[0].split("."))
        case ["podman", "build", "-f", file, "-t", _, "."]:
            assert (ROOT / file).is_file()
        case ["pip", "install", package] if package.startswith("podium["):
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            assert package.removeprefix("podium[").removesuffix("]") in extras
        case _:
            assert words in (
                ["pip", "install", "podium"],
                ["pipx", "install", "podium"],
                ["uv", "tool", "install", "podium"],
            )
