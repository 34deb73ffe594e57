"""How an API server is reached: what a kubeconfig's context comes to, or the files of a pod's service account."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from podium.api.errors import shown


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A program that gives out credentials (client.authentication.k8s.io ExecConfig)."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provides_cluster_info: bool = False


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """How somebody shows who they are; what is empty is not used.

    A token in a file is read again from time to time, since it rotates. Certificates are in a file or, as PEM, in
    ``..._data``; what is data comes before what is a file (client-go, rest.Config).
    """

    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    certificate_file: str = ""
    certificate_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""
    exec_plugin: ExecPlugin | None = None

    def __repr__(self) -> str:
        """Nothing of it: secrets have no place in logs."""
        return "<Identity>"

    __str__ = __repr__


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    """An API server, and who speaks to it.

    ``server`` is its URL. ``name`` is what people call it: the context's name, or in-cluster. ``is_insecure`` leaves
    the server's certificate unchecked. ``namespace`` is what the context names, "" for none.
    """

    name: str
    server: str
    source: str = ""
    namespace: str = ""
    authority_file: str = ""
    authority_data: bytes = b""
    server_name: str = ""
    is_insecure: bool = False
    proxy: str = ""
    identity: Identity = Identity()


def url_problem(url: str, what: str, *, may_have_password: bool = False) -> str:
    """What is wrong with the URL of something, "" for nothing. One that may have a password in it is not shown."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        has_password = "@" in parts.netloc
    except ValueError:
        is_url = has_password = False
    if not is_url:
        shown_url = "" if "@" in url else f"{shown(url)} "
        return f"{shown_url}is no URL of {what}; write https://HOST:PORT"
    if has_password and not may_have_password:
        return "has a name or a password in it; they belong to the user"
    return ""
