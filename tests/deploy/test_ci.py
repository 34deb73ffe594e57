"""The workflow that comments on pull requests with the effects of their manifests."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click
import yaml

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
    line = next(line for line in script.splitlines() if line.startswith("podium plan"))
    words = shlex.split(line.partition(" > ")[0])

    assert words[:3] == ["podium", "plan", "-f"]
    command = plan.commands[words[4]]
    options = {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}
    assert {word for word in words[5:] if word.startswith("-")} <= options
    assert set(job["env"]["FAIL_ON"].split(",")) <= set(FINDING_CODES)
