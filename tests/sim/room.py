"""Whether pods fit on their nodes.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter
from collections.abc import Iterable

from podium.api.node import Node
from podium.api.pod import ContainerPort, Pod
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.store.store import Store


def check_room(store: Store, pods: Iterable[Pod]) -> None:
    """Check that the pods fit on their nodes; pods without a node do not count. Raises AssertionError."""
    on_node: dict[str, list[Pod]] = {}
    for pod in pods:
        on_node.setdefault(pod.spec.node_name, []).append(pod)
    for stored in store.objects("Node"):
        assert isinstance(stored.object, Node)
        there, offered = on_node.get(stored.key, []), node_allocatable(stored.object.status)
        # B1
        held: Counter[str] = sum((Counter(pod_requests(pod.spec)) for pod in there), Counter())
        assert all(amount <= offered.get(name, 0) for name, amount in held.items()), stored.key
        assert len(there) <= offered["pods"], stored.key
        # B3
        ports = [port for pod in there for port in host_ports(pod)]
        assert len(ports) == len(set(ports)), stored.key


def is_running(pod: Pod) -> bool:
    """Return whether a kubelet has started the pod, and not said that it has ended."""
    return pod.status.phase == "Running"


def host_ports(pod: Pod) -> list[tuple[int, str]]:
    """Return the host ports that a pod holds, on all addresses."""
    ports: list[ContainerPort] = [port for one in pod.spec.containers for port in one.ports]
    return [(port.host_port, port.protocol) for port in ports if port.host_port]
