"""Import of production traces as nodes and arriving pods: openb and DLRM, which differ in their columns.

openb (Alibaba cluster-trace-gpu-v2023) has two files. One has `sn, cpu_milli, memory_mib, gpu, model` of nodes, the
other `name, cpu_milli, memory_mib, num_gpu, gpu_milli` (the share of a GPU if `num_gpu` is 1), `gpu_spec` (the allowed
models, such as `A|B`), `qos`, and `creation_time, deletion_time, scheduled_time`, the last empty if the pod never ran.

DLRM (cluster-trace-gpu-v2025) has one file: instances of applications with their requests in cores, GiB, GPUs and
percent of an RDMA network card. Times are empty if they are before or after the recorded month. It states no nodes.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise
from math import ceil
from operator import itemgetter
from typing import Any, BinaryIO

import msgspec

from podium.api.basis import SUPPOSED
from podium.api.errors import InputError, shown
from podium.api.input.documents import API_VERSION
from podium.api.input.files import FileName, read_bytes, shown_name
from podium.api.meta import Raw
from podium.api.names import label_value_problem, subdomain_problem
from podium.api.node import HOSTNAME_LABEL
from podium.api.times import parse_duration
from podium.controllers.kubelets.pod_run import DURATION

GPU_MODEL = "podium.dev/gpu-model"
"""The node label with the GPU model."""

GPU_MILLI = "podium.dev/gpu-milli"
"""The extended resource for GPUs, in thousandths; pods share GPUs as if a node had one large one."""

MILLI_PER_GPU = 1_000
"""The amount of that resource for one GPU."""

_CLASS_OF_QOS = {"LS": "production", "Guaranteed": "production", "Burstable": "mid", "BE": "best-effort"}
_APP, _OWNER, _ROLE = "podium.dev/app", "podium.dev/owner", "podium.dev/role"
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
# The columns of each kind of file. The first has the names.
_NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_PODS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", *_TIMES)
_INSTANCES = (
    "instance_sn",
    "role",
    "app_name",
    "cpu_request",
    "gpu_request",
    "rdma_request",
    "memory_request",
    "disk_request",
    "max_instance_per_node",
    *_TIMES,
)
# By column, the resource, how many units of its quantity are one of the column's, and the unit.
_RESOURCES = {
    **{"cpu_milli": ("cpu", 1, "m"), "memory_mib": ("memory", 1, "Mi")},
    **{"cpu": ("cpu", 1_000, "m"), "memory": ("memory", 1_024, "Mi"), "disk": ("ephemeral-storage", 1_024, "Mi")},
    **{"gpu": (GPU_MILLI, MILLI_PER_GPU, ""), "rdma": ("podium.dev/rdma-percent", 1, "")},
}
_SUPPOSED_NODES: dict[str, dict[str, int]] = {
    "CN": {"cpu": 192, "memory": 1_024, "disk": 2_048, "rdma": 200},
    "HN": {"cpu": 96, "memory": 768, "disk": 4_096, "rdma": 400, "gpu": 8},
}
_BECAUSE = "the DLRM trace states none; sizes and number follow from what its instances request"
# The share of the scarcest resource that is requested at the busiest time.
_BUSIEST = Fraction(8, 10)
# The kubelet's default, since the traces do not say.
_PODS_PER_NODE = 110
_ALL_DOMAINS = 2**31 - 1


def read_trace(*files: FileName) -> Trace:
    """Return the trace of the files. Raises InputError, with file, line and column for errors in a file."""
    tables = [read_table(file, _NODES, _PODS, _INSTANCES) for file in files]
    rows = dict(tables)
    if len(tables) == len(rows) and rows.keys() == {_INSTANCES}:
        return _dlrm(_rows_by_name(rows[_INSTANCES], "instance_sn"))
    if len(tables) != len(rows) or rows.keys() != {_NODES, _PODS}:
        problem = "not a whole trace: openb has two files, nodes and pods; DLRM has one, with instances"
        raise InputError(problem, source=", ".join(map(shown_name, files)))
    nodes = [_node(name, row) for name, row in _rows_by_name(rows[_NODES], "sn").items()]
    pods = [_pod(name, row) for name, row in _rows_by_name(rows[_PODS], "name").items()]
    return Trace("openb", [*PRIORITY_CLASSES, *nodes], pods)


def _rows_by_name(rows: Iterable[Row], column: str) -> dict[str, Row]:
    """Return the rows by name. Raises InputError for names that are invalid or given twice."""
    named: dict[str, Row] = {}
    for row in rows:
        name = row.values[column].replace("_", "-") if column == "instance_sn" else row.values[column]
        problem = subdomain_problem(name)
        if problem is not None:
            raise row.error(column, problem)
        if named.setdefault(name, row) is not row:
            raise row.error(column, f"{shown(name)} is given twice, first in line {named[name].line}")
    return named


def _object(api_version: str, kind: str, name: str, *, metadata: Raw | None = None, **parts: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **parts}


PRIORITY_CLASSES = [
    _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    for name, value in (("production", 100_000), ("mid", 50_000), ("best-effort", 0))
]
"""The priority classes of openb's pods."""


def node_object(name: str, labels: Raw, amounts: Raw, **metadata: Any) -> Raw:
    """Return a node with these labels that offers these amounts."""
    allocatable = {**amounts, "pods": _PODS_PER_NODE}
    metadata["labels"] = {HOSTNAME_LABEL: name, **labels}
    return _object("v1", "Node", name, metadata=metadata, status={"capacity": allocatable, "allocatable": allocatable})


def pod_object(name: str, labels: Raw, requests: Raw, limits: Raw, *, seconds: int | None, **spec: Any) -> Raw:
    """Return a pod that runs for so long; without end if ``seconds`` is None."""
    # The API server requires a limit equal to the request for extended resources.
    limits = {**{resource: amount for resource, amount in requests.items() if "/" in resource}, **limits}
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    metadata = {"labels": labels, "annotations": {} if seconds is None else {DURATION: f"{seconds}s"}}
    containers = [{"name": "main", "image": "trace", "resources": resources}]
    spec = {"restartPolicy": "Never", "containers": containers, **spec}
    return _object("v1", "Pod", name, metadata=metadata, spec=spec)


def _arrival(row: Row, *optional: str) -> tuple[int, int | None]:
    """Return when the pod arrives and for how long it runs, as it did, or waited if it never ran.

    A time that is ``optional`` may be empty: what was never created was there before, what was not deleted remains.
    """
    times = {column: round(row.number(column)) for column in _TIMES if column not in optional or row.values[column]}
    for (before, earlier), (after, later) in pairwise(times.items()):
        if later < earlier:
            raise row.error(after, f"{later} is before {before}, {earlier}")
    arrives, ends = times.get("creation_time", 0), times.get("deletion_time")
    return arrives, None if ends is None else ends - times.get("scheduled_time", arrives)


def _amounts(values: Mapping[str, int | Fraction]) -> Raw:
    """Return the quantities of amounts by column, rounded up; none for 0 of an extended resource."""
    found: Raw = {}
    for column, value in values.items():
        resource, factor, unit = _RESOURCES[column]
        amount = ceil(value * factor)
        if amount or unit:
            found[resource] = f"{amount}{unit}" if unit else amount
    return found


def _node(name: str, row: Row) -> Raw:
    """Return a node of openb."""
    model = row.values["model"]
    labels = {GPU_MODEL: _label_value(row, "model", model)} if model else {}
    return node_object(name, labels, _amounts({column: row.whole(column) for column in _NODES[1:4]}))


def _pod(name: str, row: Row) -> tuple[int, Raw]:
    """Return a pod of openb with its arrival."""
    qos = row.values["qos"]
    if qos not in _CLASS_OF_QOS:
        raise row.error("qos", f"{shown(qos)} is not one of {', '.join(_CLASS_OF_QOS)}")
    amounts = _amounts({column: row.whole(column) for column in _PODS[1:3]})
    gpus, share = row.whole("num_gpu"), row.whole("gpu_milli")
    if gpus == 1 and not 0 < share <= MILLI_PER_GPU:
        raise row.error("gpu_milli", f"{share} is not a share of one GPU; it is from 1 to {MILLI_PER_GPU}")
    requests = {**amounts, GPU_MILLI: share if gpus == 1 else gpus * MILLI_PER_GPU} if gpus else amounts
    spec: Raw = {"priorityClassName": _CLASS_OF_QOS[qos]}
    if row.values["gpu_spec"]:
        models = [_label_value(row, "gpu_spec", model) for model in row.values["gpu_spec"].split("|")]
        terms = [{"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}]
        needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": needed}
    arrives, seconds = _arrival(row, "scheduled_time")
    limits = amounts if qos == "Guaranteed" else {}
    return arrives, pod_object(name, {"podium.dev/qos": qos}, requests, limits, seconds=seconds, **spec)


def _label_value(row: Row, column: str, value: str) -> str:
    problem = label_value_problem(value) if value else "a name is empty"
    if problem is not None:
        raise row.error(column, problem)
    return value


def _dlrm(rows: Mapping[str, Row]) -> Trace:
    """Return the trace of the instances on supposed nodes, which hold what is requested at the busiest time."""
    arrivals: list[tuple[int, Raw]] = []
    changes: dict[str, list[tuple[int, int, Mapping[str, Fraction]]]] = {role: [] for role in _SUPPOSED_NODES}
    for name, row in rows.items():
        role = row.values["role"]
        if role not in _SUPPOSED_NODES:
            raise row.error("role", f"{shown(role)} is not one of {', '.join(_SUPPOSED_NODES)}")
        needs = {column: row.number(f"{column}_request") for column in ("cpu", "memory", "disk", "rdma")}
        needs["gpu"] = Fraction(row.whole("gpu_request"))
        arrives, seconds = _arrival(row, *_TIMES)
        changes[role].append((arrives, 1, needs))
        if seconds is not None:
            changes[role].append((arrives + seconds, -1, needs))
        arrivals.append((arrives, _instance(name, row, needs, seconds)))
    nodes = []
    for role, size in _SUPPOSED_NODES.items():
        held, most = dict.fromkeys(size, Fraction()), Fraction()
        for _, sign, change in sorted(changes[role], key=itemgetter(0, 1)):
            for column, offered in size.items():
                held[column] += sign * change[column] / offered
            most = max(most, *held.values())
        for index in range(min(len(changes[role]), ceil(most / _BUSIEST))):
            name = f"{role.lower()}-{index}"
            nodes.append(node_object(name, {_ROLE: role}, _amounts(size), annotations={SUPPOSED: _BECAUSE}))
    return Trace("dlrm", nodes, arrivals)


def _instance(name: str, row: Row, needs: Mapping[str, Fraction], seconds: int | None) -> Raw:
    """Return an instance of DLRM as a pod, with its role and the most instances of its application on a node."""
    labels = {_APP: _label_value(row, "app_name", row.values["app_name"])}
    spec: Raw = {"nodeSelector": {_ROLE: row.values["role"]}}
    if row.values["max_instance_per_node"] != "-1":
        most = row.whole("max_instance_per_node")
        if not 0 < most <= _ALL_DOMAINS:
            raise row.error("max_instance_per_node", f"{most} is not -1, for no limit, or from 1 to {_ALL_DOMAINS}")
        # The scheduler takes 0 for the smallest count as long as there are fewer nodes than minDomains; so a node's
        # skew is its count.
        spread = {"topologyKey": HOSTNAME_LABEL, "maxSkew": most, "minDomains": _ALL_DOMAINS}
        selected = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels}}
        spec["topologySpreadConstraints"] = [{**spread, **selected}]
    requests = _amounts(needs)
    return pod_object(name, labels, requests, requests, seconds=seconds, **spec)


_MAX_ROWS = 1_000_000
_MAX_DIGITS = 15
# Enough for amounts in bytes and times in nanoseconds to fit 64 bits.
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,20})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: the values as written by column, and the line number."""

    source: str
    line: int
    values: dict[str, str]

    def whole(self, column: str) -> int:
        """Return the value, which must be a whole number of 0 or more. Raises InputError."""
        text = self.values[column]
        if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
            return int(text)
        raise self.error(column, f"{shown(text)} is not a whole number of 0 or more, of at most {_MAX_DIGITS} digits")

    def number(self, column: str) -> Fraction:
        """Return the value, which must be a number of 0 or more. Raises InputError."""
        text = self.values[column]
        if _NUMBER.fullmatch(text):
            return Fraction(text)
        raise self.error(column, f"{shown(text)} is not a number of 0 or more, of at most 9 digits before a point")

    def error(self, column: str, problem: str) -> InputError:
        """Return an error with the position in the file."""
        return InputError(f"line {self.line}, column {column}: {problem}", source=self.source)


def read_table(name: FileName, *kinds: Sequence[str]) -> tuple[Sequence[str], list[Row]]:
    """Return the columns of one of the kinds, all of which the file has, and its rows; further columns are ignored.

    Raises InputError if the file cannot be read, lacks columns, has too many rows, or a row of the wrong length.
    """
    source = shown_name(name)
    try:
        text = read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: byte {error.start} does not fit; save it as UTF-8", source=source) from None
    reader = csv.reader(text.splitlines(), strict=True)
    rows: list[Row] = []
    try:
        header = next(reader, [])
        columns = max(kinds, key=lambda kind: len({*kind} & {*header}))
        missing = [column for column in columns if column not in header]
        if missing:
            needed = "; or ".join(", ".join(kind) for kind in kinds if len(missing) == len(columns) or kind == columns)
            raise InputError(f"line 1: the column {missing[0]} is missing; needed are {needed}", source=source)
        if len(set(header)) != len(header):
            raise InputError("line 1: a column is given twice", source=source)
        for values in reader:
            if len(rows) == _MAX_ROWS:
                raise InputError(f"has more than {_MAX_ROWS} rows; split it", source=source)
            if len(values) != len(header):
                problem = f"line {reader.line_num}: {len(values)} values where the header has {len(header)} columns"
                raise InputError(problem, source=source)
            rows.append(Row(source, reader.line_num, dict(zip(header, values, strict=True))))
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: not valid CSV: {error}", source=source) from None
    return columns, rows


@dataclass(frozen=True, slots=True)
class Trace:
    """The initial objects, arriving ones with their times in seconds, and the steps that delete some of these."""

    name: str
    objects: list[Raw]
    arrivals: list[tuple[int, Raw]]
    deletions: Sequence[Raw] = ()

    def documents(self) -> Iterator[Raw]:
        """Yield the objects, then the scenario in which the others arrive and leave; one step for each time."""
        yield from self.objects
        arrivals = sorted(self.arrivals, key=itemgetter(0))
        steps = [
            {"at": f"{time}s", "apply": [raw for _, raw in arriving]}
            for time, arriving in groupby(arrivals, key=itemgetter(0))
        ]
        yield _object(API_VERSION, "Scenario", self.name, spec={"steps": [*steps, *self.deletions]})

    def write(self, stream: BinaryIO) -> None:
        """Write the documents as JSON lines."""
        for document in self.documents():
            stream.write(msgspec.json.encode(document) + b"\n")


_DRIVER, _DEVICE_CLASS = "gpu.podium.dev", "gpu"
_CAPACITY, _CLAIM = "milli", "gpu"
_RESOURCE = "resource.k8s.io/v1"
_DEFAULT = {"namespace": "default"}


def with_devices(trace: Trace) -> Trace:
    """Return the trace with ResourceSlices, a DeviceClass, and claims from a template for each size."""
    objects: list[Raw] = []
    slices: list[Raw] = []
    for raw in trace.objects:
        amounts = dict(raw["status"]["allocatable"]) if raw["kind"] == "Node" else {}
        gpus = amounts.pop(GPU_MILLI, 0)
        if gpus:
            slices.append(_slice(raw, gpus // MILLI_PER_GPU))
        objects.append({**raw, "status": {"capacity": amounts, "allocatable": amounts}} if gpus else raw)
    templates: dict[int, Raw] = {}
    arrivals = [(time, _claiming(pod, templates)) for time, pod in trace.arrivals]
    selectors = [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]
    class_ = _object(_RESOURCE, "DeviceClass", _DEVICE_CLASS, spec={"selectors": selectors})
    by_size = [templates[milli] for milli in sorted(templates)]
    return replace(trace, objects=[*objects, class_, *slices, *by_size], arrivals=arrivals)


def _slice(node: Raw, gpus: int) -> Raw:
    name = node["metadata"]["name"]
    device = {
        "attributes": {"model": {"string": node["metadata"]["labels"].get(GPU_MODEL, "")}},
        "capacity": {_CAPACITY: {"value": str(MILLI_PER_GPU)}},
        "allowMultipleAllocations": True,
    }
    spec = {
        "driver": _DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}", **device} for number in range(gpus)],
    }
    return _object(_RESOURCE, "ResourceSlice", f"{name}-gpus", spec=spec)


def _claiming(pod: Raw, templates: dict[int, Raw]) -> Raw:
    """Return the pod with a claim instead of its GPU request: a share of one device, or several whole ones.

    Adds the claim's template by the thousandths that the pod requests, if it is not there.
    """
    (container,) = pod["spec"]["containers"]
    resources = {part: dict(amounts) for part, amounts in container["resources"].items()}
    milli = max(amounts.pop(GPU_MILLI, 0) for amounts in resources.values())
    if not milli:
        return pod
    name = f"gpu-{milli}m" if milli < MILLI_PER_GPU else f"gpus-{milli // MILLI_PER_GPU}"
    exactly = {
        "deviceClassName": _DEVICE_CLASS,
        "count": max(1, milli // MILLI_PER_GPU),
        "capacity": {"requests": {_CAPACITY: str(min(milli, MILLI_PER_GPU))}},
    }
    spec = {"spec": {"devices": {"requests": [{"name": _CLAIM, "exactly": exactly}]}}}
    templates[milli] = _object(_RESOURCE, "ResourceClaimTemplate", name, metadata=_DEFAULT, spec=spec)
    left = {part: amounts for part, amounts in resources.items() if amounts}
    claimed = {**container, "resources": {**left, "claims": [{"name": _CLAIM}]}}
    claims = [{"name": _CLAIM, "resourceClaimTemplateName": name}]
    return {**pod, "spec": {**pod["spec"], "containers": [claimed], "resourceClaims": claims}}


# Pods that run at least so long are treated as services.
_SERVICE_SECONDS = 3_600


def with_owners(trace: Trace) -> Trace:
    """Return the trace with a workload for each pod, of the pod's name."""
    # Disruptions of a Job's pods do not count as failures.
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    arrivals: list[tuple[int, Raw]] = []
    deletions: list[Raw] = []
    for time, pod in trace.arrivals:
        name, labels, annotations = (pod["metadata"][key] for key in ("name", "labels", "annotations"))
        seconds = parse_duration(annotations[DURATION]) // 10**9 if annotations else None
        is_long = seconds is None or seconds >= _SERVICE_SECONDS
        if is_long and pod["spec"].get("priorityClassName") != "best-effort":
            kind = "apps/v1", "ReplicaSet"
            labels = {_OWNER: name, **labels}
            template = {"metadata": {"labels": labels}, "spec": {**pod["spec"], "restartPolicy": "Always"}}
            spec = {"replicas": 1, "selector": {"matchLabels": {_OWNER: name}}, "template": template}
            if seconds is not None:
                gone = {"kind": "ReplicaSet", **_DEFAULT, "name": name}
                deletions.append({"at": f"{time + seconds}s", "delete": gone})
        else:
            kind = "batch/v1", "Job"
            template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod["spec"]}
            spec = {"podFailurePolicy": {"rules": [disrupted]}, "template": template}
        arrivals.append((time, _object(*kind, name, metadata={**_DEFAULT, "labels": labels}, spec=spec)))
    return replace(trace, arrivals=arrivals, deletions=deletions)


def with_fewer_nodes(trace: Trace, share: float) -> Trace:
    """Return the trace with a share of the nodes, at least one, of each kind proportionally (largest remainders).

    Nodes of a kind offer the same and have equal labels, names aside. Its first nodes stay; ties go to the first kind.
    """
    kinds: defaultdict[bytes, list[str]] = defaultdict(list)
    for raw in trace.objects:
        if raw["kind"] == "Node":
            name = raw["metadata"]["name"]
            labels = {key: value for key, value in raw["metadata"]["labels"].items() if value != name}
            kind = msgspec.json.encode((labels, raw["status"]["allocatable"]), order="deterministic")
            kinds[kind].append(name)
    exact = Fraction(str(share))
    total = max(1, round(sum(map(len, kinds.values())) * exact))
    # Largest remainder method: the nodes within the whole part of a kind's quota come first.
    ranked = sorted(
        (index - len(names) * exact, number, name)
        for number, names in enumerate(kinds.values())
        for index, name in enumerate(names)
    )
    kept = {name for _, _, name in ranked[:total]}
    objects = [raw for raw in trace.objects if raw["kind"] != "Node" or raw["metadata"]["name"] in kept]
    return replace(trace, objects=objects)


def sped_up(trace: Trace, factor: float) -> Trace:
    """Return the trace with arrivals so many times as fast, rounded down to seconds, and unchanged durations."""
    exact = Fraction(str(factor))
    return replace(trace, arrivals=[(int(time / exact), raw) for time, raw in trace.arrivals])
