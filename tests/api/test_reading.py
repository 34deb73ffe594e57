from typing import Any, Literal

import msgspec
import pytest

from podium.api.errors import InputError, MalformedError
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.reading import read


def error_of(spec: Any, type_: type[Pod | PodDisruptionBudget] = Pod) -> str:
    with pytest.raises(InputError) as caught:
        read({"spec": spec}, type_)
    return str(caught.value)


def test_fields_that_are_not_known_are_left_out() -> None:
    pod = read({"metadata": {"name": "web"}, "spec": {"dnsPolicy": "Default", "nodeName": "n1"}}, Pod)

    assert (pod.metadata.name, pod.spec.node_name) == ("web", "n1")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"priority": "high"}, '.spec.priority: "high" is not a whole number'),
        ({"priority": True}, ".spec.priority: true is not a whole number"),
        ({"priority": 1.5}, ".spec.priority: 1.5 is not a whole number"),
        ({"priority": 2**31}, ".spec.priority: 2147483648 is out of range; it must be <= 2147483647"),
        ({"hostNetwork": "yes"}, '.spec.hostNetwork: "yes" is not true or false'),
        ({"nodeSelector": {"ok": "x", "cores": 8}}, ".spec.nodeSelector.cores: 8 is not text; put it in quotes"),
        ({"nodeSelector": ["x"]}, ".spec.nodeSelector: a list is not an object"),
        ({"containers": {}}, ".spec.containers: an object is not a list"),
        (
            {"containers": [{}, {"resources": {"requests": {"cpu": 1, "example.com/gpu": [1]}}}]},
            '.spec.containers[1].resources.requests["example.com/gpu"]: a list is not a number or text',
        ),
        ({"schedulingGates": [{}]}, ".spec.schedulingGates[0].name: is missing, and must be given"),
        (
            {"tolerations": [{"operator": "Has"}]},
            '.spec.tolerations[0].operator: "Has" is not one of "", "Equal", "Exists", "Gt", "Lt"',
        ),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            ".spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
            "is missing, and must be given",
        ),
        ("x", '.spec: "x" is not an object'),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_path_and_what_belongs_there(spec: Any, error: str) -> None:
    assert error_of(spec) == error


def test_a_number_or_a_percentage_is_taken_and_nothing_else() -> None:
    assert (
        error_of({"minAvailable": 0.5}, PodDisruptionBudget) == ".spec.minAvailable: 0.5 is not a whole number or text"
    )


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: Literal["small", "large"] = "small"
    count: int = 0


class Outer(msgspec.Struct):
    inner: dict[str, Inner] = {}
    sizes: dict[str, Literal["small", "large"]] = {}


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"inner": {"a": {}, "b": 3}}, ".inner.b: 3 is not an object"),
        ({"inner": {"a": {"size": "huge"}}}, ".inner[...].size: Invalid enum value 'huge'"),
        ({"inner": {"a": {"count": "x"}}}, ".inner[...].count: Expected `int`, got `str`"),
        ({"inner": {"a": {"depth": 1}}}, '.inner[...]: there is no field "depth"; known are: size, count'),
        ({"sizes": {"a": "huge"}}, ".sizes[...]: Invalid enum value 'huge'"),
    ],
)
def test_an_error_names_the_entry_of_an_object_when_possible(raw: Any, error: str) -> None:
    with pytest.raises(InputError) as caught:
        read(raw, Outer)

    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("spec", "malformed"),
    [
        ({"priority": "high"}, True),
        ({"priority": 2**31}, True),
        ({"nodeSelector": {"zone": 1}}, True),
        ({"tolerations": [{"operator": "Is"}]}, False),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}, False),
    ],
)
def test_b10_unreadable_input_is_distinguished_from_invalid_input(spec: Any, malformed: bool) -> None:
    with pytest.raises(InputError) as caught:
        read({"spec": spec}, Pod)

    assert isinstance(caught.value, MalformedError) == malformed
    assert type(caught.value.located(source="in.yaml")) is type(caught.value)


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    max_entries: int = 0
    inner: "Strict | None" = None


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"maxEntry": 1}, 'there is no field "maxEntry"; did you mean maxEntries?'),
        ({"inner": {"inner": {"other": 1}}}, '.inner.inner: there is no field "other"; known are: maxEntries, inner'),
    ],
)
def test_strict_reading_names_the_unknown_field_and_the_known_ones(raw: Any, error: str) -> None:
    with pytest.raises(InputError) as caught:
        read(raw, Strict)

    assert str(caught.value) == error


@pytest.mark.parametrize("place", ["nothing", "maxEntries", "maxEntries.deeper", "inner.nothing", "inner[0]", "x[...]"])
def test_an_unknown_field_named_like_a_path_is_rejected(place: str) -> None:
    with pytest.raises(InputError, match="there is no field"):
        read({f"x` - at `$.{place}": 1, "maxEntries": 1, "inner": {}}, Strict)
    with pytest.raises(InputError, match=r"\.inner: there is no field"):
        read({"inner": {f"x` - at `$.{place}": 1}}, Strict)
