"""The Kubernetes version of a data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.api.errors import InputError
from podium.api.versions.choice import read_choice
from podium.api.versions.release import Release, read_version
from podium.app.serving.run import VERSION_FILE, UpOptions, assembled, release_of, settings_of, token_key_of

DEFAULT = read_version("1.36")


def started(directory: Path, version: str = "", gates: str = "") -> tuple[Release, list[str]]:
    reports: list[str] = []
    choice = read_choice(version, gates)
    return release_of(directory, choice, choice.of(DEFAULT), reports.append), reports


def up(directory: Path, version: str = "") -> Release:
    wanted = UpOptions(data_dir=str(directory), release=read_choice(version))
    plane = assembled(wanted, settings_of(wanted))[1].plane
    plane.close()
    return plane.release


def test_the_cluster_keeps_its_version_at_the_next_start(tmp_path: Path) -> None:
    assert str(up(tmp_path / "data", "1.34.1")) == "v1.34.1"
    assert str(up(tmp_path / "data")) == "v1.34.1"
    assert str(up(tmp_path / "new")) == "v1.36.2"


def test_gates_are_kept_unless_others_are_chosen(tmp_path: Path) -> None:
    started(tmp_path, "1.33", "PodLevelResources=true")

    assert started(tmp_path)[0].gates == (("PodLevelResources", True),)
    assert started(tmp_path, "", "DynamicResourceAllocation=true")[0].gates == (("DynamicResourceAllocation", True),)
    assert (tmp_path / VERSION_FILE).read_text() == "v1.33.13 DynamicResourceAllocation=true\n"
    assert (tmp_path / VERSION_FILE).stat().st_mode & 0o777 == 0o600


def test_an_upgrade_by_one_minor_version_is_reported(tmp_path: Path) -> None:
    started(tmp_path, "1.34")

    release, reports = started(tmp_path, "1.35")

    assert str(release) == "v1.35.6"
    assert reports == [f"{tmp_path}: the cluster is upgraded from Kubernetes v1.34.9 to v1.35.6"]


def test_gates_that_the_new_version_does_not_know_are_reported(tmp_path: Path) -> None:
    started(tmp_path, "1.36", "SchedulerQueueingHints=true")

    release, reports = started(tmp_path, "1.37")

    assert release.gates == ()
    assert "v1.37.0 does not know the feature gates SchedulerQueueingHints: they are left out" in reports[1]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("1.33", r"of Kubernetes v1\.34\.9, and cannot be used with v1\.33\.13: a cluster cannot be downgraded"),
        ("1.36", r"cannot be used with v1\.36\.2: upgrade by one minor version at a time, next to 1\.35"),
    ],
)
def test_other_versions_are_refused_and_change_nothing(tmp_path: Path, version: str, says: str) -> None:
    started(tmp_path, "1.34")

    with pytest.raises(InputError, match=says) as refused:
        started(tmp_path, version)

    assert refused.value.source == str(tmp_path)
    assert str(started(tmp_path)[0]) == "v1.34.9"


def test_the_patch_level_may_change_in_both_directions(tmp_path: Path) -> None:
    for version in ("1.34.5", "1.34.9", "1.34.1"):
        assert str(started(tmp_path, version)[0]) == f"v{version}"


def test_an_unreadable_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / VERSION_FILE).write_text("latest")

    with pytest.raises(InputError, match=r'Kubernetes version "latest" is not understood'):
        started(tmp_path)


def test_the_key_of_tokens_is_made_once_and_is_private(tmp_path: Path) -> None:
    key = token_key_of(tmp_path)

    assert len(key) == 32
    assert token_key_of(tmp_path) == key
    assert (tmp_path / "token-key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "00", "secret", "\u00e4"])
def test_a_key_of_tokens_that_is_none_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "token-key").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match="delete the file to get a new one") as refused:
        token_key_of(tmp_path)

    assert "secret" not in str(refused.value)
