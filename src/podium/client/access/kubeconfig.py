"""Kubeconfig files: which clusters a person can reach, as whom.

Several files are one: of what two of them name alike the first counts, and paths are relative to their own file.

Source: k8s.io/client-go/tools/clientcmd (loader.go, client_config.go), and api/v1/types.go there for the fields.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from podium.api.errors import InputError, shown
from podium.api.input.files import read_bytes
from podium.api.input.yaml import parse_documents
from podium.api.reading import read
from podium.client.access.cluster_access import ClusterAccess, ExecPlugin, Identity, url_problem

_MOST_BYTES = 1 << 22
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The base of what stands in a kubeconfig; fields that Podium does not use are left alone."""


class _Cluster(_Part, frozen=True, kw_only=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class _ExecVariable(_Part, frozen=True, kw_only=True):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[_ExecVariable, ...] | None = None
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provide_cluster_info: bool = False


class _User(_Part, frozen=True, kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = None
    as_: str = msgspec.field(name="as", default="")


class _Context(_Part, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True, kw_only=True):
    name: str
    cluster: _Cluster


class _NamedUser(_Part, frozen=True, kw_only=True):
    name: str
    user: _User


class _NamedContext(_Part, frozen=True, kw_only=True):
    name: str
    context: _Context


class _Written(_Part, frozen=True, kw_only=True):
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None
    current_context: str = ""


class Kubeconfig:
    """The clusters, users and contexts of one file or several."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Read the files. Raises InputError for what cannot be read, or holds keys that others may read."""
        self._source = ", ".join(paths)
        self._clusters: dict[str, tuple[str, _Cluster]] = {}
        self._users: dict[str, tuple[str, _User]] = {}
        self._contexts: dict[str, tuple[str, _Context]] = {}
        self._current = ""
        for path in paths:
            self._add(path, _read(path))

    @property
    def contexts(self) -> list[str]:
        """The names of the contexts, sorted."""
        return sorted(self._contexts)

    def access(self, context: str = "") -> ClusterAccess:
        """What a context comes to; "" stands for the current one. Raises InputError."""
        name = context or self._current
        if not name:
            raise InputError("names no current-context; choose one with --context", source=self._source)
        _, chosen = self._named(self._contexts, name, "context")
        source, cluster = self._named(self._clusters, chosen.cluster, "cluster")
        _check_urls(cluster, source, f"cluster {chosen.cluster}")
        access = ClusterAccess(
            name=name,
            server=cluster.server.rstrip("/"),
            source=source,
            namespace=chosen.namespace,
            authority_file=_beside(source, cluster.certificate_authority),
            authority_data=_decoded(
                cluster.certificate_authority_data, source, f"cluster {chosen.cluster}", ".certificate-authority-data"
            ),
            server_name=cluster.tls_server_name,
            is_insecure=cluster.insecure_skip_tls_verify,
            proxy=cluster.proxy_url,
        )
        if not chosen.user:
            return access
        source, user = self._named(self._users, chosen.user, "user")
        return msgspec.structs.replace(access, identity=_identity(user, source, f"user {chosen.user}"))

    def _add(self, path: str, written: _Written) -> None:
        for cluster in written.clusters or ():
            self._clusters.setdefault(cluster.name, (path, cluster.cluster))
        for user in written.users or ():
            self._users.setdefault(user.name, (path, user.user))
        for context in written.contexts or ():
            self._contexts.setdefault(context.name, (path, context.context))
        self._current = self._current or written.current_context

    def _named(self, found: Mapping[str, tuple[str, Named]], name: str, what: str) -> tuple[str, Named]:
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise InputError(f"has no {what} {shown(name)}; there are: {known}", source=self._source)
        return found[name]


Named = TypeVar("Named")


def kubeconfig_paths(given: str, environment: Mapping[str, str]) -> list[str]:
    """The files to read: the one that is given, else those of KUBECONFIG, else the usual one; those that exist."""
    if given:
        return [given]
    listed = [path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    home = environment.get("HOME", "")
    usual = [str(Path(home) / ".kube" / "config")] if home else []
    return [path for path in dict.fromkeys(listed or usual) if Path(path).exists()]


def _read(path: str) -> _Written:
    content = read_bytes(path)
    if len(content) > _MOST_BYTES:
        raise InputError(f"is larger than {_MOST_BYTES} bytes; that is no kubeconfig", source=path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8; that is no kubeconfig", source=path) from None
    try:
        documents = [value for _, value in parse_documents(text)]
        if not documents:
            return _Written()
        if len(documents) > 1 or not isinstance(documents[0], dict):
            raise InputError("is not one object; a kubeconfig is one, of kind Config")
        written = read(documents[0], _Written)
    except InputError as error:
        raise error.located(source=path) from None
    _check_private(path, written.users or ())
    return written


def _check_private(path: str, users: Iterable[_NamedUser]) -> None:
    """Raise InputError where others may read the keys in a file."""
    secret = [named.name for named in users if named.user.token or named.user.password or named.user.client_key_data]
    if secret and os.name == "posix" and Path(path).stat().st_mode & _OTHERS:
        problem = f"holds keys of user {secret[0]} and may be read by others; allow that to nobody: chmod 600 {path}"
        raise InputError(problem, source=path)


def _check_urls(cluster: _Cluster, source: str, object_: str) -> None:
    problem, path = url_problem(cluster.server, "an API server"), ".server"
    if not problem and cluster.proxy_url:
        problem, path = url_problem(cluster.proxy_url, "a proxy", may_have_password=True), ".proxy-url"
    if problem:
        raise InputError(problem, source=source, object=object_, path=path)


def _identity(user: _User, source: str, object_: str) -> Identity:
    if user.auth_provider is not None:
        problem = "is gone from Kubernetes since v1.26; let an exec plugin give out the credentials"
        raise InputError(problem, source=source, object=object_, path=".auth-provider")
    if user.as_:
        problem = "nobody is impersonated here; take a user with rights of its own"
        raise InputError(problem, source=source, object=object_, path=".as")
    return Identity(
        token=user.token,
        token_file=_beside(source, user.token_file),
        username=user.username,
        password=user.password,
        certificate_file=_beside(source, user.client_certificate),
        certificate_data=_decoded(user.client_certificate_data, source, object_, ".client-certificate-data"),
        key_file=_beside(source, user.client_key),
        key_data=_decoded(user.client_key_data, source, object_, ".client-key-data"),
        exec_plugin=None if user.exec is None else _plugin(user.exec, source),
    )


def _plugin(written: _Exec, source: str) -> ExecPlugin:
    # A command with a slash is a path beside the file; one without is looked for on PATH.
    command = _beside(source, written.command) if "/" in written.command else written.command
    return ExecPlugin(
        command=command,
        args=written.args or (),
        env=tuple((variable.name, variable.value) for variable in written.env or ()),
        api_version=written.api_version,
        install_hint=written.install_hint,
        provides_cluster_info=written.provide_cluster_info,
    )


def _beside(source: str, path: str) -> str:
    return str(Path(source).parent / path) if path else ""


def _decoded(text: str, source: str, object_: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # What stands there may be a key: it is not shown.
        raise InputError("is not base64", source=source, object=object_, path=path) from None
