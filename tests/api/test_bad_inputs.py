"""Hostile and malformed input: Podium survives each case, and refuses it with a helpful message."""

import json
from typing import Any

import pytest

from podium.api.checks import MAX_ENTRIES
from podium.api.errors import InputError
from podium.api.input.codec import Document, load_text
from podium.api.pod import Pod
from podium.api.selectors import NOTHING, LabelSelector, LabelSelectorRequirement, compile_label_selector


def reported(text: str) -> str:
    """Return the warnings about an input that is taken all the same."""
    return "\n".join(str(warning) for one in load_text(text, "in.yaml") for warning in one.warnings)


def refused(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        load_text(text, "in.yaml")
    line = str(caught.value)
    assert line.startswith("in.yaml")
    assert line.isprintable()
    assert len(line) < 1_500
    return line


def pod(**spec: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


def requesting(resource: str, amount: Any, **limits: Any) -> str:
    resources = {"requests": {resource: amount}, "limits": {resource: limits["limit"]} if limits else {}}
    return pod(containers=[{"resources": resources}])


def named(name: str, **metadata: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}})


def budget(**spec: Any) -> str:
    return json.dumps(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}
    )


def the_one(documents: list[Document]) -> Any:
    (document,) = documents
    return document.object


def test_b01_an_alias_bomb_is_refused_before_it_unfolds() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]

    assert "aliases bring in more than 100000 values" in refused("\n".join(lines))
    assert "the alias *a is within the value that it refers to" in refused("&a [*a]")


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", '{"a":', "a: ["])
def test_b02_deep_nesting_is_refused(opening: str) -> None:
    megabytes = opening * (3 * 2**20 // len(opening) - 1)

    assert "document 1" in refused(megabytes)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b'{"apiVersion": "v1", "kind": "Po', "not valid JSON"),
        (b"apiVersion: v1\nkind: 'Po", "not valid YAML"),
        (b"apiVersion: \xff", "is not UTF-8: byte 12 does not fit"),
        ("apiVersion: v1".encode("utf-16"), "is encoded as UTF-16; save it as UTF-8"),
        (b"apiVersion: v1\0", "has a NUL character at byte 14; is it a binary file?"),
        (b'{"apiVersion": "\\ud800"}', "has half a surrogate pair"),
        ("apiVersion: \ud800", "has half a surrogate pair"),
    ],
)
def test_b04_empty_truncated_and_wrongly_encoded_content_is_refused(content: bytes | str, problem: str) -> None:
    assert problem in refused(content)


def test_b06_keys_given_twice_are_refused() -> None:
    assert ".spec.priority: is given twice" in refused(pod(priority=1).replace("1}}", '1, "priority": 2}}'))
    assert 'the key "kind" is given twice' in refused("kind: Pod\nkind: Node")


def test_b06_unknown_fields_are_rejected_or_kept_unparsed() -> None:
    (document,) = load_text(pod(nodeNaem="n1"), "in.yaml", "warn")

    assert ".spec.nodeNaem: there is no such field; did you mean nodeName?" in refused(pod(nodeNaem="n1"))
    assert document.raw["spec"] == {"nodeNaem": "n1"}


@pytest.mark.parametrize(("text", "value"), [("no", "false"), ("on", "true"), ("y", "true"), ("1_000", "1000")])
def test_b09_a_label_that_kubectl_takes_for_a_boolean_or_a_number_is_refused(text: str, value: str) -> None:
    labelled = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {a: %s}}\n"

    assert f".metadata.labels.a: {value} is not text; put it in quotes" in refused(labelled % text)
    assert the_one(load_text(labelled % f"'{text}'", "in.yaml")).metadata.labels == {"a": text}


def test_b09_scalars_of_yaml_1_1_that_kubectl_does_not_know_are_text() -> None:
    assert load_text("apiVersion: a/b\nkind: A\nx: [1:30, 2024-01-01, 0x10, 1e3]", "in.yaml")[0].raw["x"] == [
        "1:30",
        "2024-01-01",
        16,
        1_000.0,
    ]
    assert ".nan is not a number" in refused("a: .nan")


@pytest.mark.parametrize("amount", ["", "abc", "NaN", "1.5.5", "1 Gi", "1gi", "\u0661", "1_000", "Infinity", "sNaN"])
def test_b10_invalid_quantities_in_inputs_are_rejected(amount: str) -> None:
    assert "Pod default/web, .spec.containers[0].resources.requests.memory: " in refused(requesting("memory", amount))


@pytest.mark.parametrize(
    "amount", ["1e9223372036854775807", "2E6024865272343", "1e4294967297", "1e2000000", "1e-2000000"]
)
def test_b11_huge_exponents_are_refused_unread(amount: str) -> None:
    assert "has an exponent beyond 30" in refused(requesting("cpu", amount))


@pytest.mark.parametrize("amount", ["9999999Ei", "1E", "1e30", 10**60])
def test_b12_huge_amounts_are_taken(amount: Any) -> None:
    assert isinstance(the_one(load_text(requesting("cpu", amount), "in.yaml")), Pod)


def test_b13_negative_amounts_are_refused() -> None:
    assert '"-1" is negative; it must be 0 or more' in refused(requesting("cpu", "-1"))
    assert "-1 is negative; it must be 0 or more" in refused(requesting("cpu", -1))


def test_b14_requests_beyond_limits_and_fractions_are_reported() -> None:
    assert "must be less than or equal to cpu limit of" in reported(requesting("cpu", "1001m", limit="1"))
    assert "must be an integer" in reported(requesting("example.com/gpu", "500m"))
    assert "is not positive integer multiple of hugepages-2Mi" in reported(requesting("hugepages-2Mi", "3Mi"))


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        ("NaN", ".spec.priority: NaN is not a number"),
        ("Infinity", ".spec.priority: Infinity is not a number"),
        ("-Infinity", ".spec.priority: -Infinity is not a number"),
        ("1e999", '.spec.priority: "1e999" is too large'),
        ("1" * 5_000, "a number has thousands of digits"),
        ("1" * 4_000, ".spec.priority: a number of more than 77 digits is out of range"),
    ],
)
def test_b15_numbers_that_json_cannot_hold_are_refused(number: str, problem: str) -> None:
    assert problem in refused(pod(priority=0).replace('"priority": 0', f'"priority": {number}'))


def test_b16_a_quantity_of_200_kilobytes_is_refused_by_its_length() -> None:
    assert "has at most 64 characters, this one has 200000" in refused(requesting("cpu", "1" * 200_000))


@pytest.mark.parametrize("name", ["Web", "../etc", "a%2fb", ".", "..", "a\0b", "x" * 254, "-a", "a b", "\x1b[31m"])
def test_b20_invalid_names_are_refused(name: str) -> None:
    assert ".metadata.name: " in refused(named(name))


def test_b20_invalid_namespaces_are_rejected_and_invalid_labels_reported() -> None:
    assert ".metadata.namespace: " in refused(named("web", namespace="../a"))
    assert '.metadata.labels["a b"]: ' in reported(named("web", labels={"a b": "x"}))
    assert ".metadata.labels.a: " in reported(named("web", labels={"a": "x" * 64}))


def test_b20_a_generated_name_is_at_most_as_long_as_a_name() -> None:
    name = the_one(load_text(named("", generateName="w" * 300), "in.yaml")).metadata.name

    assert (name[:58], len(name)) == ("w" * 58, 63)
    assert ".metadata.name: " in refused(named("", generateName="../"))


@pytest.mark.parametrize(
    "spec",
    [
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": "101%"},
        {"maxUnavailable": -1},
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
    ],
)
def test_b25_budgets_that_make_no_sense_are_refused(spec: dict[str, Any]) -> None:
    assert "PodDisruptionBudget default/web, .spec" in refused(budget(**spec))


def test_b26_a_stored_budget_with_a_selector_that_no_longer_parses_matches_nothing() -> None:
    wrong = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a b", operator="Exists"),))

    assert compile_label_selector(wrong) == NOTHING


def test_b27_whether_a_priority_class_exists_and_agrees_is_left_to_admission() -> None:
    read = the_one(load_text(pod(priorityClassName="unknown", priority=7), "in.yaml"))

    assert (read.spec.priority_class_name, read.spec.priority) == ("unknown", 7)


TOO_MANY, MAX_VALUES = MAX_ENTRIES + 1, 10_000
TOLERATION = {"key": "a", "operator": "Exists"}
TERM = {"topologyKey": "zone"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{}] * TOO_MANY},
        {"initContainers": [{}] * TOO_MANY},
        {"containers": [{"ports": [{}] * TOO_MANY}]},
        {"tolerations": [TOLERATION] * TOO_MANY},
        {"volumes": [{}] * TOO_MANY},
        {"schedulingGates": [{"name": "a"}] * TOO_MANY},
        {"topologySpreadConstraints": [SPREAD] * TOO_MANY},
        {"affinity": {"podAffinity": {REQUIRED: [TERM] * TOO_MANY}}},
        {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}] * TOO_MANY}}},
        {"affinity": {"podAffinity": {REQUIRED: [{**TERM, "namespaces": ["a"] * TOO_MANY}]}}},
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}}] * TOO_MANY}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}] * TOO_MANY}}}},
        {
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * (MAX_VALUES + 1)}]}
                        ]
                    }
                }
            }
        },
    ],
    ids=[
        "containers",
        "init containers",
        "ports",
        "tolerations",
        "volumes",
        "gates",
        "spread",
        "affinity",
        "preferred anti-affinity",
        "namespaces",
        "preferred node affinity",
        "node selector terms",
        "values",
    ],
)
def test_b28_lists_that_would_stall_scheduling_are_refused(spec: dict[str, Any]) -> None:
    text = refused(pod(**spec))

    assert any(f"Too many: {most + 1}: must have at most {most} items" in text for most in (MAX_ENTRIES, MAX_VALUES))


def test_b28_a_hundred_thousand_labels_are_taken() -> None:
    labels = {f"label-{number}": "x" for number in range(100_000)}

    assert len(the_one(load_text(named("web", labels=labels), "in.yaml")).metadata.labels) == 100_000


def test_b29_two_controllers_and_empty_topology_keys_are_reported() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "controller": True}

    two = [owner, {**owner, "name": "b"}]
    assert "Only one reference can have Controller set to true" in reported(named("web", ownerReferences=two))
    term = {"podAntiAffinity": {REQUIRED: [{"topologyKey": ""}]}}
    assert ".topologyKey: Required value: can not be empty" in reported(pod(affinity=term))


def test_b29_owners_in_a_circle_and_antiaffinity_to_oneself_are_taken() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "controller": True}]
    oneself = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    raw = json.loads(pod(affinity={"podAntiAffinity": {REQUIRED: [oneself]}}))
    raw["metadata"].update(ownerReferences=owners, labels={"app": "web"})

    assert isinstance(the_one(load_text(json.dumps(raw), "in.yaml")), Pod)
