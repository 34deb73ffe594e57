"""The kubeconfig of a control plane: where it is, and how one is let in.

Source: k8s.io/client-go/tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from podium.api.errors import InputError
from podium.api.meta import Raw

_NAME = "podium"
_NAMESPACE = "namespace"
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_MOST_CHARACTERS = 65_536
_FIRST_LINE = "# Written by `podium up`, which writes it anew.\n"


@dataclass(frozen=True, slots=True)
class Access:
    """How clients reach a server: its URL, the file with the certificate that it shows, and their token, if any."""

    server: str
    authority_file: str = ""
    token: str = ""


def kubeconfig(access: Access) -> Raw:
    """A kubeconfig with one context."""
    cluster = {"server": access.server}
    if access.authority_file:
        cluster["certificate-authority"] = str(Path(access.authority_file).absolute())
    user = {"token": access.token} if access.token else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }


def check_place(path: Path) -> None:
    """Raise InputError for a file that somebody else has written, which would be lost."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_MOST_CHARACTERS)
    if text and not text.startswith(_FIRST_LINE) and not _is_as_kubectl_writes_it(text):
        problem = "is not a kubeconfig of `podium up`, and is not written over; name another file"
        raise InputError(problem, source=str(path))


def _is_as_kubectl_writes_it(text: str) -> bool:
    """Whether it is such a kubeconfig, of which kubectl has changed a context: its comments are gone then."""
    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return False
    if not isinstance(raw, dict):
        return False
    ours = kubeconfig(Access("", "file", "token"))
    return all(_is_all_of(raw.get(listed), ours[listed][0], field) for listed, field in _LISTS.items())


def _is_all_of(listed: Any, ours: Raw, field: str) -> bool:
    """Whether a list has the entry of ours alone, and in it nothing but what we write, and a namespace."""
    if not isinstance(listed, list) or len(listed) != 1 or not isinstance(listed[0], dict):
        return False
    value = listed[0].get(field) or {}
    return (
        listed[0].get("name") == _NAME and isinstance(value, dict) and value.keys() <= {*ours[field].keys(), _NAMESPACE}
    )


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write the file, for its owner alone, all of it or nothing. Raises InputError as `check_place` does."""
    check_place(path)
    text = _FIRST_LINE + yaml.safe_dump(kubeconfig(access), sort_keys=False)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
