"""The kubeconfigs that `podium up` may overwrite."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.api.errors import InputError
from podium.app.serving.serving import write_kubeconfig

ACCESS = {"server": "http://127.0.0.1:7443", "token": "a-token-of-some-length"}


def rewritten(path: Path, **changes: Any) -> None:
    """Return the file as kubectl writes it: without comments, in the order of its fields."""
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "preferences": {}, **changes}))


def test_an_own_kubeconfig_is_rewritten_though_kubectl_changed_its_namespace(tmp_path: Path) -> None:
    path = tmp_path / "k"
    write_kubeconfig(path, **ACCESS)
    first = path.read_text()
    context = {"cluster": "podium", "user": "podium", "namespace": "shop"}
    rewritten(path, contexts=[{"name": "podium", "context": context}])

    write_kubeconfig(path, **ACCESS)

    assert path.read_text() == first


@pytest.mark.parametrize(
    "changes",
    [
        {"users": []},
        {"users": [{"name": "podium", "user": {"client-key": "key.pem"}}]},
        {"users": [{"name": "podium", "user": {}}, {"name": "me", "user": {}}]},
        {"clusters": [{"name": "production", "cluster": {}}]},
        {"contexts": "x"},
        {"contexts": [5]},
    ],
    ids=str,
)
def test_a_kubeconfig_with_other_content_is_not_overwritten(tmp_path: Path, changes: Any) -> None:
    path = tmp_path / "k"
    write_kubeconfig(path, **ACCESS)
    rewritten(path, **changes)
    before = path.read_text()

    with pytest.raises(InputError, match="is not a kubeconfig of `podium up`"):
        write_kubeconfig(path, **ACCESS)

    assert path.read_text() == before


@pytest.mark.parametrize("text", ["a: [", "[]", "kind: Config\n", "\x00", "[" * 30_000], ids=range(5))
def test_an_invalid_kubeconfig_is_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k"
    path.write_text(text)

    with pytest.raises(InputError, match="is not a kubeconfig of `podium up`"):
        write_kubeconfig(path, **ACCESS)


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    with pytest.raises(InputError, match="is not a regular file"):
        write_kubeconfig(path, **ACCESS)

    assert path.is_fifo()


def test_an_empty_file_has_nothing_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.touch()

    write_kubeconfig(path, **ACCESS)

    assert path.read_text()
