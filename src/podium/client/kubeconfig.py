"""Kubeconfig files: the clusters, users and contexts of a person.

Several files are merged: the first definition of a name counts, and paths are relative to their own file.

Source: k8s.io/client-go/tools/clientcmd (loader.go, client_config.go), and api/v1/types.go there for the fields.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from podium.api.errors import InputError, locating, shown
from podium.api.input.files import read_bytes
from podium.api.input.yaml import parse_documents
from podium.api.reading import read
from podium.client.credentials import ClusterAccess, ExecPlugin, Identity, decoded_base64, url_problem

_MOST_BYTES = 1 << 22
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

Named = TypeVar("Named")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The base of kubeconfig entries; fields that Podium does not use are ignored."""


class _Cluster(_Part, frozen=True, kw_only=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class _User(_Part, frozen=True, kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: ExecPlugin | None = None
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
    """The clusters, users and contexts of one or several files."""

    def __init__(self, paths: Sequence[str], absent: Sequence[str] = ()) -> None:
        """Read the files. Raises InputError for unreadable files, and for keys that other users can read.

        `absent` are files that were named but do not exist. They count only in errors about what no file has.
        """
        self._source = ", ".join(paths)
        self._absent = absent_note(absent)
        self._clusters: dict[str, tuple[str, _Cluster]] = {}
        self._users: dict[str, tuple[str, _User]] = {}
        self._contexts: dict[str, tuple[str, _Context]] = {}
        self._current = ""
        for path in paths:
            written = _read(path)
            for cluster in written.clusters or ():
                self._clusters.setdefault(cluster.name, (path, cluster.cluster))
            for user in written.users or ():
                self._users.setdefault(user.name, (path, user.user))
            for context in written.contexts or ():
                self._contexts.setdefault(context.name, (path, context.context))
            self._current = self._current or written.current_context

    @property
    def contexts(self) -> list[str]:
        """The names of the contexts, sorted."""
        return sorted(self._contexts)

    def access(self, context: str = "") -> ClusterAccess:
        """Return the access data of a context; "" is the current one. Raises InputError."""
        name = context or self._current
        if not name:
            problem = f"names no current-context; choose one with --context{self._absent}"
            raise InputError(problem, source=self._source)
        _, chosen = self._entry(self._contexts, name, "context")
        source, cluster = self._entry(self._clusters, chosen.cluster, "cluster")
        problem, path = url_problem(cluster.server, "an API server"), ".server"
        if not problem and cluster.proxy_url:
            problem, path = url_problem(cluster.proxy_url, "a proxy", may_have_password=True), ".proxy-url"
        if problem:
            raise InputError(problem, source=source, object=f"cluster {chosen.cluster}", path=path)
        access = ClusterAccess(
            name=name,
            server=cluster.server.rstrip("/"),
            source=source,
            namespace=chosen.namespace,
            authority_file=_beside(source, cluster.certificate_authority),
            authority_data=decoded_base64(
                cluster.certificate_authority_data,
                source=source,
                object_=f"cluster {chosen.cluster}",
                path=".certificate-authority-data",
            ),
            server_name=cluster.tls_server_name,
            is_insecure=cluster.insecure_skip_tls_verify,
            proxy=cluster.proxy_url,
        )
        if not chosen.user:
            return access
        source, user = self._entry(self._users, chosen.user, "user")
        return msgspec.structs.replace(access, identity=_identity(user, source, f"user {chosen.user}"))

    def _entry(self, found: Mapping[str, tuple[str, Named]], name: str, what: str) -> tuple[str, Named]:
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise InputError(f"has no {what} {shown(name)}; there are: {known}{self._absent}", source=self._source)
        return found[name]


def kubeconfig_paths(given: str, environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the files to read, and those of KUBECONFIG that do not exist.

    The file that is given comes before those of KUBECONFIG, and these before the usual one.
    """
    if given:
        return [given], []
    listed = list(dict.fromkeys(path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path))
    home = environment.get("HOME", "")
    usual = [str(Path(home) / ".kube" / "config")] if home else []
    absent = [path for path in listed if not Path(path).exists()]
    return [path for path in listed or usual if Path(path).exists()], absent


def absent_note(absent: Sequence[str]) -> str:
    """Return the end of an error's message that names the files of KUBECONFIG which do not exist; "" if all exist."""
    if not absent:
        return ""
    verb = "does" if len(absent) == 1 else "do"
    return f"; KUBECONFIG names {', '.join(absent)}, which {verb} not exist"


def _read(path: str) -> _Written:
    content = read_bytes(path)
    if len(content) > _MOST_BYTES:
        raise InputError(f"is larger than {_MOST_BYTES} bytes; that is not a kubeconfig", source=path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8; that is not a kubeconfig", source=path) from None
    with locating(source=path):
        documents = [value for _, value in parse_documents(text)]
        if not documents:
            return _Written()
        if len(documents) > 1 or not isinstance(documents[0], dict):
            raise InputError("is not one object; a kubeconfig is one, of kind Config")
        written = read(documents[0], _Written)
    users = ((named.name, named.user) for named in written.users or ())
    secret = [name for name, user in users if user.token or user.password or user.client_key_data]
    if secret and os.name == "posix" and Path(path).stat().st_mode & _OTHERS:
        problem = (
            f"holds keys of user {secret[0]} and other users may read it; restrict its permissions: chmod 600 {path}"
        )
        raise InputError(problem, source=path)
    return written


def _identity(user: _User, source: str, object_: str) -> Identity:
    if user.auth_provider is not None:
        problem = "is gone from Kubernetes since v1.26; let an exec plugin give out the credentials"
        raise InputError(problem, source=source, object=object_, path=".auth-provider")
    if user.as_:
        problem = "impersonation is not supported; use a user with the required rights"
        raise InputError(problem, source=source, object=object_, path=".as")
    decoded = partial(decoded_base64, source=source, object_=object_)
    plugin = user.exec
    if plugin is not None and "/" in plugin.command:
        # A command with a slash is relative to the file; one without is searched on PATH.
        plugin = msgspec.structs.replace(plugin, command=_beside(source, plugin.command))
    return Identity(
        token=user.token,
        token_file=_beside(source, user.token_file),
        username=user.username,
        password=user.password,
        certificate_file=_beside(source, user.client_certificate),
        certificate_data=decoded(user.client_certificate_data, path=".client-certificate-data"),
        key_file=_beside(source, user.client_key),
        key_data=decoded(user.client_key_data, path=".client-key-data"),
        exec_plugin=plugin,
    )


def _beside(source: str, path: str) -> str:
    return str(Path(source).parent / path) if path else ""


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ClusterAccess | None:
    """Return the access of a pod; None outside of pods. Raises InputError for an invalid address."""
    host, port = environment.get(_HOST, ""), environment.get(_PORT, "")
    token, authority = folder / "token", folder / "ca.crt"
    if not host or not port or not token.exists():
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    if url_problem(server, "an API server"):
        raise InputError(f"{_HOST} and {_PORT} are {shown(host)} and {shown(port)}, which are not a host and a port")
    namespace = folder / "namespace"
    return ClusterAccess(
        name="in-cluster",
        server=server,
        source=str(folder),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "",
        authority_file=str(authority),
        identity=Identity(token_file=str(token)),
    )


def find_access(
    environment: Mapping[str, str], kubeconfig: str = "", context: str = "", folder: Path = SERVICE_ACCOUNT
) -> ClusterAccess:
    """Return the access from a kubeconfig, else that of the pod. Raises InputError if there is neither."""
    paths, absent = kubeconfig_paths(kubeconfig, environment)
    if paths:
        return Kubeconfig(paths, absent).access(context)
    access = None if context else in_cluster(environment, folder)
    if access is None:
        raise InputError(
            "no cluster is known: there is neither a kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config) nor a "
            f"service account of a pod{absent_note(absent)}"
        )
    return access
