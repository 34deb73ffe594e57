"""How a pod reaches the API server of its own cluster: by its service account.

Source: k8s.io/client-go/rest (InClusterConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from podium.api.errors import InputError, shown
from podium.client.access.cluster_access import ClusterAccess, Identity, url_problem
from podium.client.access.kubeconfig import Kubeconfig, kubeconfig_paths

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ClusterAccess | None:
    """The access that a pod has; None outside of pods. Raises InputError for an address that is none."""
    host, port = environment.get(_HOST, ""), environment.get(_PORT, "")
    token, authority = folder / "token", folder / "ca.crt"
    if not host or not port or not token.exists():
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    if url_problem(server, "an API server"):
        raise InputError(f"{_HOST} and {_PORT} are {shown(host)} and {shown(port)}, which are no host and no port")
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
    """The API server that is meant: that of a kubeconfig, else the pod's own. Raises InputError where there is none."""
    paths = kubeconfig_paths(kubeconfig, environment)
    if paths:
        return Kubeconfig(paths).access(context)
    access = None if context else in_cluster(environment, folder)
    if access is None:
        raise InputError(
            "no cluster is known: there is neither a kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config) nor a "
            "service account of a pod"
        )
    return access
