"""How an API server is reached: what a kubeconfig's context comes to, or the files of a pod's service account."""

from __future__ import annotations

import msgspec


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
