"""The objects of a kind at one version, against the history of writes."""

from hypothesis import given
from hypothesis import strategies as st

from podium.store.listing import PartOfKind
from podium.store.store import Store
from podium.store.stored import Stored
from tests.store.objects import node, pod

PODS = [("a", "x"), ("a", "y"), ("a-b", "x"), ("b", "x"), ("b", "y")]
WRITES = st.lists(st.sampled_from([*PODS, ("", "")]), max_size=30)


def write(store: Store, namespace: str, name: str) -> None:
    """Bring a pod, change it, and let it go, by turns; the pod without a name is a node."""
    key = f"{namespace}/{name}"
    found = store.find("Pod", key)
    if not name:
        store.create(node(f"n{store.version}"), now=0)
    elif found is None:
        store.create(pod(name, namespace=namespace), now=0)
    elif not found.object.metadata.labels:
        store.patch("Pod", key, {"metadata": {"labels": {"is": "changed"}}}, "merge")
    else:
        store.delete("Pod", key, now=0)


@given(
    writes=WRITES,
    back=st.integers(0, 30),
    namespace=st.sampled_from(["", "a", "b", "c"]),
    after=st.sampled_from(["", "a/x", "b/x"]),
)
def test_the_objects_of_a_version_are_what_its_history_leaves(
    writes: list[tuple[str, str]], back: int, namespace: str, after: str
) -> None:
    store = Store()
    for one in writes:
        write(store, *one)
    version = max(store.version - back, 0)
    then: dict[str, Stored] = {}
    for event in store.events_since(0)[:version]:
        if event.type == "DELETED":
            del then[event.stored.key]
        else:
            then[event.stored.key] = event.stored
    pods = (stored for _, stored in sorted(then.items()) if stored.kind == "Pod" and stored.key > after)
    expected = [stored for stored in pods if namespace in ("", stored.object.metadata.namespace)]

    part = PartOfKind(store._revisions, "Pod", namespace, after, version)

    assert list(part) == expected
    assert len(part) == len(expected)
