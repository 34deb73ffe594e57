"""The workflow, action and jobs that show what changed manifests do to a cluster."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from podium.api.input.codec import load_files
from podium.app.console.command import podium
from podium.app.planning.command import plan
from podium.app.planning.constants import FINDING_CODES
from tools import dev

FILE = dev.ROOT / "deploy" / "ci" / "plan.yml"
PINNED = re.compile(r"- uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def test_every_action_is_named_by_its_commit_as_in_our_own_workflows() -> None:
    used = [line.strip() for line in FILE.read_text().splitlines() if "uses:" in line]
    own = (dev.ROOT / ".github" / "workflows" / "checks.yml").read_text()

    assert used
    assert [line for line in used if not PINNED.match(line) or line not in own] == []


def test_the_ci_workflow_may_only_comment_and_keeps_request_text_out_of_scripts() -> None:
    loaded = workflow()

    assert loaded["permissions"] == {"contents": "read"}
    assert loaded["jobs"]["plan"]["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "secrets." not in FILE.read_text()
    assert [step["run"] for step in loaded["jobs"]["plan"]["steps"] if "${{" in step.get("run", "")] == []
    assert "pull_request" in {key for value in loaded.values() if isinstance(value, dict) for key in value}


def test_the_ci_workflow_runs_a_plan_with_existing_options_and_finding_codes() -> None:
    job = workflow()["jobs"]["plan"]
    (script,) = [step["run"] for step in job["steps"] if step.get("id") == "plan"]
    line = next(line for line in script.splitlines() if "podium plan" in line)
    words = shlex.split(line.partition(" || ")[0])[1:]

    assert words[:2] == ["podium", "plan"]
    command = plan.commands[words[2]]
    options = {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}
    assert {word for word in words[3 : words.index("--")] if word.startswith("-")} <= options
    assert set(job["env"]["FAIL_ON"].split(",")) <= set(FINDING_CODES)


ACTION = yaml.safe_load((dev.ROOT / "action.yml").read_text())
COOKBOOK = dev.ROOT / "examples" / "cookbook"


def plan_step(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """Run the plan of the action as a runner does; return its exit code, what it prints, and the files it writes."""
    program = folder / "podium" / "bin" / "podium"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m podium "$@"\n')
    program.chmod(0o755)
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "plan"]
    given = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()} | inputs
    names = {name: re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value) for name, value in step["env"].items()}
    variables = {name: given[found[1]] for name, found in names.items() if found}
    files = {"GITHUB_STEP_SUMMARY": folder / "summary", "GITHUB_OUTPUT": folder / "output"}
    for file in files.values():
        file.touch()
    environment = {**os.environ, "RUNNER_TEMP": str(folder), **{name: str(file) for name, file in files.items()}}
    # As GitHub runs `shell: bash`.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    result = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, {name: file.read_text() for name, file in files.items()}


def test_the_action_annotates_the_manifests_and_fails_for_findings(tmp_path: Path) -> None:
    manifests, cluster = str(COOKBOOK / "deploy-checkout.yaml"), str(COOKBOOK / "deploy.yaml")
    code, printed, files = plan_step(tmp_path, manifests=manifests, cluster=cluster)

    assert code == 2
    assert "::notice title=podium plan deploy::Plan: 3 placed, 0 evicted, 4 preempted, 3 missing at the end" in printed
    assert f"::warning file={manifests},title=podium preempt::4 pods are preempted" in printed
    assert files["GITHUB_STEP_SUMMARY"].startswith("**Plan: 3 placed")
    assert files["GITHUB_OUTPUT"] == f"code=2\ncomment={tmp_path}/podium-plan.md\n"
    assert (tmp_path / "podium-plan.md").read_text() == files["GITHUB_STEP_SUMMARY"]


def test_the_action_passes_without_findings_that_fail_it(tmp_path: Path) -> None:
    cluster, after = str(COOKBOOK / "compare.yaml"), str(COOKBOOK / "compare-after.yaml")
    inputs = {"cluster": cluster, "manifests": after, "question": "diff", "fail-on": "timeout"}
    code, printed, files = plan_step(tmp_path, **inputs)

    assert code == 0
    assert "::notice title=podium plan diff::" in printed
    assert files["GITHUB_OUTPUT"].startswith("code=0\n")


def test_the_action_passes_with_any_finding_if_none_fails_it(tmp_path: Path) -> None:
    manifests, cluster = str(COOKBOOK / "deploy-checkout.yaml"), str(COOKBOOK / "deploy.yaml")
    code, printed, files = plan_step(tmp_path, **{"manifests": manifests, "cluster": cluster, "fail-on": ""})

    assert code == 0
    assert "title=podium preempt::4 pods are preempted" in printed
    assert files["GITHUB_OUTPUT"].startswith("code=0\n")


def test_the_action_says_what_is_wrong_with_its_input(tmp_path: Path) -> None:
    code, _, files = plan_step(tmp_path, manifests="none.yaml", cluster=str(COOKBOOK / "deploy.yaml"))

    assert code == 1
    assert files["GITHUB_OUTPUT"].startswith("code=1\n")


def test_the_action_keeps_inputs_out_of_scripts_and_names_existing_findings() -> None:
    steps = ACTION["runs"]["steps"]

    assert [step["name"] for step in steps if "${{" in step["run"] or step["shell"] != "bash"] == []
    assert set(ACTION["inputs"]["fail-on"]["default"].split(",")) <= set(FINDING_CODES)
    assert [
        entry for entry in (*ACTION["inputs"].values(), *ACTION["outputs"].values()) if "description" not in entry
    ] == []


def test_the_gitlab_job_keeps_the_plan_and_fails_for_findings(tmp_path: Path) -> None:
    job = yaml.safe_load((dev.ROOT / "deploy" / "ci" / "gitlab.yml").read_text())["podium-plan"]
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, script in (("podium", f'exec {sys.executable} -m podium "$@"'), ("pip", "exit 0")):
        (bin_ / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin_ / name).chmod(0o755)
    environment = {**os.environ, **job["variables"], "PATH": f"{bin_}:{os.environ['PATH']}"}
    environment |= {
        "PODIUM_CLUSTER": str(COOKBOOK / "deploy.yaml"),
        "PODIUM_MANIFESTS": str(COOKBOOK / "deploy-checkout.yaml"),
    }
    # A runner joins the lines into one script that ends with the first error.
    command = ["bash", "-e", "-c", "\n".join(job["script"])]
    result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert result.returncode == 2, result.stderr
    assert job["artifacts"]["paths"] == ["plan.md"]
    assert (tmp_path / "plan.md").read_text() == result.stdout
    assert result.stdout.startswith("**Plan: 3 placed")


def test_the_presync_job_is_valid_and_its_command_has_existing_options() -> None:
    file = dev.ROOT / "deploy" / "ci" / "argocd-presync.yaml"
    documents = load_files([str(file)], "strict")
    job = documents[1].raw
    (container,) = job["spec"]["template"]["spec"]["containers"]
    program, *arguments = container["command"]

    assert [document.raw["kind"] for document in documents] == ["ServiceAccount", "Job"]
    assert all("PreSync" in document.raw["metadata"]["annotations"].values() for document in documents)
    assert program == "kubectl-podium"
    context = click.Context(podium, **podium.context_settings)
    name, command, rest = podium.resolve_command(context, arguments)
    assert command is not None
    command.make_context(name, rest, parent=context)
