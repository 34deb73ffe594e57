import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from podium.api.kinds import SERVED_KINDS, Kind
from podium.api.schemas.schema import (
    Field,
    Leaf,
    ListOf,
    MapOf,
    Object,
    Type,
    defaults_of,
    fields_of,
    immutable_paths,
    is_type,
    schema_of,
    type_in,
)

OWN_GROUP = "podium.dev"
KUBERNETES = [kind for kind in SERVED_KINDS.values() if kind.group != OWN_GROUP]


def test_fields_are_read_as_they_are_written() -> None:
    pod_spec = fields_of("PodSpec")

    assert pod_spec["nodeName"] == Field(Leaf("str"), number=10)
    assert pod_spec["priority"] == Field(Leaf("int"), number=25, keeps_zero=True)
    assert pod_spec["tolerations"] == Field(ListOf(Object("Toleration")), number=22)
    assert pod_spec["containers"] == Field(ListOf(Object("Container")), "name", ("name",), number=2)
    assert pod_spec["overhead"] == Field(MapOf(Leaf("quantity")), number=32)
    assert pod_spec["nodeSelector"].is_atomic
    assert fields_of("ObjectMeta")["finalizers"] == Field(ListOf(Leaf("str")), "", (), number=14)
    assert fields_of("PodDisruptionBudgetSpec")["selector"].strategy == "replace"


def test_inlined_fields_are_fields_of_the_type() -> None:
    assert fields_of("Volume")["hostPath"] == Field(Object("HostPathVolumeSource"), number=1, keeps_zero=True)
    assert "" not in fields_of("Volume")


def test_types_are_found_by_version_and_name() -> None:
    assert type_in("autoscaling/v2", "HorizontalPodAutoscaler") == Object("HorizontalPodAutoscaler")
    assert type_in("autoscaling/v1", "HorizontalPodAutoscaler") == Object("autoscaling/v1.HorizontalPodAutoscaler")
    assert type_in("apps/v1", "Pod") is None


def test_types_refer_to_types_of_the_same_version() -> None:
    spec = fields_of("autoscaling/v1.HorizontalPodAutoscaler")["spec"].type
    assert spec == Object("autoscaling/v1.HorizontalPodAutoscalerSpec")


def test_every_kind_of_kubernetes_that_is_stored_has_a_schema() -> None:
    assert [kind.name for kind in KUBERNETES if schema_of(kind.group, kind.name) != Object(kind.name)] == []


@pytest.mark.parametrize(("group", "kind"), [("apps", "Pod"), ("", "PodSpec"), ("podium.dev", "Scenario")])
def test_other_kinds_have_none(group: str, kind: str) -> None:
    assert schema_of(group, kind) is None


@pytest.mark.parametrize("kind", KUBERNETES, ids=lambda kind: kind.name)
def test_every_type_named_by_a_schema_exists(kind: Kind) -> None:
    waiting: list[Type] = [Object(kind.name)]
    seen: set[str] = set()
    while waiting:
        match waiting.pop():
            case ListOf(inner) | MapOf(inner):
                waiting.append(inner)
            case Object(name) if name not in seen:
                seen.add(name)
                waiting.extend(field.type for field in fields_of(name).values())
    assert "ObjectMeta" in seen


# What these read includes fields of older versions, which are shaped otherwise.
OF_ONE_SHAPE = [kind for kind in KUBERNETES if kind.group != "resource.k8s.io"]


@pytest.mark.parametrize("kind", OF_ONE_SHAPE, ids=lambda kind: kind.name)
def test_every_parsed_field_of_a_kind_is_in_its_schema(kind: Kind) -> None:
    assert list(missing(kind.type, Object(kind.name), kind.name)) == []


def missing(read: Any, schema: Type, path: str) -> Iterator[str]:
    """Yield the paths of the fields of a reading that the schema does not have."""
    for one in typing.get_args(read) or (read,):
        if one is not read:
            yield from missing(one, schema, path)
    match schema:
        case ListOf(inner) | MapOf(inner):
            yield from (found for one in typing.get_args(read) for found in missing(one, inner, path))
        case Object(name) if isinstance(read, type) and issubclass(read, msgspec.Struct):
            known = fields_of(name)
            types = typing.get_type_hints(read, include_extras=False)
            for field in msgspec.structs.fields(read):
                if field.encode_name not in known:
                    yield f"{path}.{field.encode_name}"
                else:
                    inner = known[field.encode_name].type
                    yield from missing(types[field.name], inner, f"{path}.{field.encode_name}")


def test_fields_that_no_update_changes_are_those_of_the_kind_and_of_its_spec() -> None:
    assert {("spec", "selector"), ("spec", "completionMode")} < {*immutable_paths("batch", "Job")}
    assert ("parameters",) in immutable_paths("storage.k8s.io", "StorageClass")
    # A CronJob makes Jobs of a template, which may change.
    assert immutable_paths("batch", "CronJob") == ()
    assert immutable_paths("example.com", "Widget") == ()


def test_server_defaults_are_part_of_the_schema() -> None:
    assert defaults_of("PodSpec") == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    assert defaults_of("RollingUpdateDeployment") == {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert defaults_of("CronJobSpec")["suspend"] is False
    assert defaults_of("HostPathVolumeSource") == {"type": ""}
    assert is_type("PodSpec")
