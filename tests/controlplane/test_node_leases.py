"""The Leases of nodes are renewed while a client reads them."""

from podium.apirequests.request import Request
from podium.store.listing import ListOptions
from podium.testing import ControlPlane

NAMESPACE = "kube-node-lease"


def renewed(cluster: ControlPlane, name: str = "node-1") -> str:
    answer = cluster.request(Request(verb="get", kind="Lease", key=f"{NAMESPACE}/{name}"))
    return str((answer.object or {})["spec"]["renewTime"])


def test_node_leases_are_read_as_renewed_within_10_s() -> None:
    with ControlPlane(nodes=2) as cluster:
        assert renewed(cluster) == "2026-01-01T00:00:00.000000Z"
        cluster.advance("9s")
        assert renewed(cluster) == "2026-01-01T00:00:00.000000Z"
        cluster.advance("1.5s")
        assert renewed(cluster) == "2026-01-01T00:00:10.500000Z"


def test_a_lease_list_covers_each_node_and_writes_nothing_unobserved() -> None:
    with ControlPlane(nodes=3) as cluster:
        found = cluster.objects("Lease", NAMESPACE)
        version = cluster.plane.store.version
        cluster.advance("1h")

        assert [lease["metadata"]["name"] for lease in found] == ["node-1", "node-2", "node-3"]
        assert found[0]["metadata"]["ownerReferences"][0]["kind"] == "Node"
        assert cluster.plane.store.version == version


def test_leases_are_renewed_on_time_while_they_are_watched() -> None:
    with ControlPlane(nodes=2) as cluster:
        version = str(cluster.plane.store.version)
        options = ListOptions(resource_version=version)
        watch = cluster.request(Request(verb="watch", kind="Lease", namespace=NAMESPACE, options=options)).watch
        assert watch is not None
        watch.pull()

        cluster.advance("30s")
        assert [notice.type for notice in watch.pull()] == ["MODIFIED"] * 6
        del watch
        version = str(cluster.plane.store.version)
        cluster.advance("1h")
        assert str(cluster.plane.store.version) == version


def test_a_machine_that_is_down_renews_nothing() -> None:
    with ControlPlane(nodes=1) as cluster:
        before = renewed(cluster)
        cluster.stop_node("node-1")
        cluster.advance("20s")

        assert renewed(cluster) == before


def test_a_lease_goes_with_its_node() -> None:
    with ControlPlane(nodes=1) as cluster:
        renewed(cluster)
        cluster.delete("Node", "node-1")
        cluster.advance("1m")

        assert cluster.objects("Lease", NAMESPACE) == []


def test_leases_of_others_are_theirs() -> None:
    with ControlPlane(nodes=1, without=["kubelet"]) as cluster:
        assert cluster.objects("Lease", NAMESPACE) == []
