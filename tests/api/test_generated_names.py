from podium.api.input.codec import generated_names, load_text

POD = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\n---\n"


def test_names_of_one_input_differ_and_are_the_same_each_time() -> None:
    first, second = ([name("web-") for name in [generated_names()] for _ in range(10_000)] for _ in range(2))

    assert first == second
    assert len(set(first)) == 10_000


def test_objects_without_a_name_get_one_made_of_their_prefix() -> None:
    documents = load_text(POD * 2, "in")

    names = [one.object.metadata.name for one in documents if one.object is not None]
    assert [one.raw["metadata"]["name"] for one in documents] == names
    assert [name[:4] for name in names] == ["web-", "web-"]
    assert len(set(names)) == 2


def test_an_object_with_a_name_keeps_it() -> None:
    (document,) = load_text("{apiVersion: v1, kind: Pod, metadata: {name: a, generateName: b-}}", "in")

    assert document.raw["metadata"]["name"] == "a"
