"""The contents of a release, and the checks of third-party packages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import dev

WORKFLOWS = sorted((dev.ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"- uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
WRITES = {"contents": "write", "id-token": "write", "attestations": "write"}


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((dev.ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    return loaded


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_action_is_named_by_its_commit_and_says_which_version_that_is(file: Path) -> None:
    used = [line.strip() for line in file.read_text().splitlines() if "uses:" in line]

    assert used
    assert [line for line in used if not PINNED.match(line)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_only_a_release_may_write_and_nothing_reads_a_secret(file: Path) -> None:
    loaded = yaml.safe_load(file.read_text())
    granted = [job.get("permissions", {}) for job in loaded["jobs"].values()]
    writes = {right for rights in granted for right, level in rights.items() if level == "write"}

    assert loaded["permissions"] == {"contents": "read"}
    assert writes == (set(WRITES) if file.stem == "release" else set())
    assert "secrets." not in file.read_text()


def test_a_release_is_checked_audited_and_attested_before_it_is_published() -> None:
    jobs = workflow("release")["jobs"]
    steps = [step.get("run") or step["uses"] for step in jobs["build"]["steps"]]
    order = [
        next(i for i, step in enumerate(steps) if word in step)
        for word in ("verification.verified", ".ci/run", "dev.py audit", "dev.py build", "attest-build", "gh release")
    ]

    assert order == sorted(order)
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["steps"][-1]["with"] == {"attestations": True}


def test_a_vulnerability_is_accepted_with_a_reason_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    (tmp_path / "requirements").mkdir()
    file = tmp_path / "requirements" / "accepted-vulnerabilities.txt"

    file.write_text("# for people\n\nPYSEC-2026-1  nothing here parses such a header\n")
    assert dev.accepted_vulnerabilities() == {"PYSEC-2026-1": "nothing here parses such a header"}
    file.write_text("PYSEC-2026-1\n")
    with pytest.raises(SystemExit, match="PYSEC-2026-1 is accepted without a reason"):
        dev.accepted_vulnerabilities()


def test_accepted_vulnerabilities_state_their_reasons() -> None:
    assert all(dev.accepted_vulnerabilities().values())


def test_the_base_of_the_image_is_named_by_its_digest() -> None:
    written = (dev.ROOT / "deploy" / "Containerfile").read_text()

    assert re.search(r"^ARG BASE=docker\.io/library/python:3\.\d+-slim@sha256:[0-9a-f]{64}$", written, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", written, re.MULTILINE)) == {"${BASE}"}
