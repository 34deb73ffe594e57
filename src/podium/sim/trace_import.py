"""Import of the openb trace, a production GPU cluster (Alibaba cluster-trace-gpu-v2023), as nodes and arriving pods.

nodes.csv has `sn, cpu_milli, memory_mib, gpu, model`; pods.csv has `name, cpu_milli, memory_mib, num_gpu, gpu_milli`
(the share of a GPU if `num_gpu` is 1), `gpu_spec` (the allowed models, such as `A|B`), `qos`, and `creation_time,
deletion_time, scheduled_time` in seconds, the last empty if the pod never ran.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, BinaryIO

import msgspec

from podium.api.errors import InputError, shown
from podium.api.input.documents import API_VERSION
from podium.api.input.files import FileName, read_bytes, shown_name
from podium.api.meta import Raw
from podium.api.names import label_value_problem, subdomain_problem
from podium.api.times import parse_duration
from podium.controllers.kubelets.pod_run import DURATION

GPU_MODEL = "podium.dev/gpu-model"
"""The node label with the GPU model."""

GPU_MILLI = "podium.dev/gpu-milli"
"""The extended resource for GPUs, in thousandths; pods share GPUs as if a node had one large one."""

MILLI_PER_GPU = 1_000
"""The amount of that resource for one GPU."""

PRIORITIES = {"production": 100_000, "mid": 50_000, "best-effort": 0}
"""The pods' priority classes and their values."""

_CLASS_OF_QOS = {"LS": "production", "Guaranteed": "production", "Burstable": "mid", "BE": "best-effort"}
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
# The kubelet's default, since the trace does not say.
_PODS_PER_NODE = 110


def read_trace(nodes: FileName, pods: FileName) -> Trace:
    """Return the trace of the two files. Raises InputError with file, line and column for errors."""
    classes = [
        _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value) for name, value in PRIORITIES.items()
    ]
    node_rows = _named(nodes, _NODE_COLUMNS, "sn")
    pod_rows = _named(pods, _POD_COLUMNS, "name")
    return Trace(
        name="openb",
        objects=[*classes, *(_node(row) for row in node_rows)],
        arrivals=[(row.whole("creation_time"), _pod(row)) for row in pod_rows],
    )


def _named(file: FileName, columns: tuple[str, ...], name_column: str) -> list[Row]:
    """Return the rows of a file, which have valid and distinct names."""
    rows: dict[str, Row] = {}
    for row in read_table(file, columns):
        name = row.text(name_column)
        problem = subdomain_problem(name)
        if problem is not None:
            raise row.error(name_column, problem)
        if rows.setdefault(name, row) is not row:
            raise row.error(name_column, f"{shown(name)} is given twice, first in line {rows[name].line}")
    return list(rows.values())


def _object(api_version: str, kind: str, name: str, *, metadata: Raw | None = None, **parts: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **parts}


def _node(row: Row) -> Raw:
    name, model = row.text("sn"), row.text("model")
    labels = {"kubernetes.io/hostname": name}
    if model:
        labels[GPU_MODEL] = _model(row, "model", model)
    allocatable: Raw = {**_amounts(row), "pods": _PODS_PER_NODE}
    if row.whole("gpu"):
        allocatable[GPU_MILLI] = row.whole("gpu") * MILLI_PER_GPU
    status = {"capacity": allocatable, "allocatable": allocatable}
    return _object("v1", "Node", name, metadata={"labels": labels}, status=status)


def _amounts(row: Row) -> Raw:
    return {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}


def _pod(row: Row) -> Raw:
    qos = row.text("qos")
    if qos not in _CLASS_OF_QOS:
        raise row.error("qos", f"{shown(qos)} is not one of {', '.join(_CLASS_OF_QOS)}")
    requests, gpus, share = _amounts(row), row.whole("num_gpu"), row.whole("gpu_milli")
    if gpus == 1 and not 0 < share <= MILLI_PER_GPU:
        raise row.error("gpu_milli", f"{share} is no share of one GPU; it is from 1 to {MILLI_PER_GPU}")
    if gpus:
        requests[GPU_MILLI] = share if gpus == 1 else gpus * MILLI_PER_GPU
    resources = {"requests": requests, "limits": requests} if qos == "Guaranteed" else {"requests": requests}
    if GPU_MILLI in requests:
        # The API server requires a limit equal to the request for extended resources.
        resources = {**resources, "limits": {GPU_MILLI: requests[GPU_MILLI], **resources.get("limits", {})}}
    spec: Raw = {
        "priorityClassName": _CLASS_OF_QOS[qos],
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "openb", "resources": resources}],
    }
    if row.text("gpu_spec"):
        models = [_model(row, "gpu_spec", model) for model in row.text("gpu_spec").split("|")]
        terms = [{"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}]
        needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": needed}
    metadata = {"labels": {"podium.dev/qos": qos}, "annotations": {DURATION: _duration(row)}}
    return _object("v1", "Pod", row.text("name"), metadata=metadata, spec=spec)


def _model(row: Row, column: str, model: str) -> str:
    problem = label_value_problem(model) if model else "a model's name is empty"
    if problem is not None:
        raise row.error(column, problem)
    return model


def _duration(row: Row) -> str:
    """Return how long the pod ran, or waited if it never ran."""
    column = "scheduled_time" if row.text("scheduled_time") else "creation_time"
    began, ended = row.whole(column), row.whole("deletion_time")
    if ended < began:
        raise row.error("deletion_time", f"{ended} is before {column}, {began}")
    return f"{ended - began}s"


MAX_ROWS = 1_000_000
"""The largest number of rows of a file."""

_MAX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: the values by column, and the line number."""

    source: str
    line: int
    values: dict[str, str]

    def text(self, column: str) -> str:
        """Return the value as written, "" if empty."""
        return self.values[column]

    def whole(self, column: str) -> int:
        """Return the value, which must be a whole number of 0 or more. Raises InputError."""
        text = self.values[column]
        if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
            return int(text)
        raise self.error(column, f"{shown(text)} is not a whole number of 0 or more, of at most {_MAX_DIGITS} digits")

    def error(self, column: str, problem: str) -> InputError:
        """Return an error with the position in the file."""
        return InputError(f"line {self.line}, column {column}: {problem}", source=self.source)


def read_table(name: FileName, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a file that has these columns, in any order; others are ignored.

    Raises InputError if the file cannot be read, lacks columns, has too many rows, or a row of the wrong length.
    """
    source = shown_name(name)
    try:
        text = read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: byte {error.start} does not fit; save it as UTF-8", source=source) from None
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise InputError(
                f"line 1: the column {missing[0]} is missing; needed are {', '.join(columns)}", source=source
            )
        if len(set(header)) != len(header):
            raise InputError("line 1: a column is given twice", source=source)
        for number, values in enumerate(reader, start=1):
            if number > MAX_ROWS:
                raise InputError(f"has more than {MAX_ROWS} rows; split it", source=source)
            if len(values) != len(header):
                problem = f"line {reader.line_num}: {len(values)} values where the header has {len(header)} columns"
                raise InputError(problem, source=source)
            yield Row(source, reader.line_num, dict(zip(header, values, strict=True)))
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: not valid CSV: {error}", source=source) from None


@dataclass(frozen=True, slots=True)
class Trace:
    """The initial objects, and arriving ones with their times in seconds.

    ``stays`` has how long workloads stay before they are deleted, in seconds, by name.
    """

    name: str
    objects: list[Raw]
    arrivals: list[tuple[int, Raw]]
    stays: Mapping[str, int] = field(default_factory=dict)

    def documents(self) -> Iterator[Raw]:
        """Yield the objects, then the scenario in which the others arrive and leave; one step for each time."""
        yield from self.objects
        steps: list[Raw] = []
        last = None
        for time, arriving in sorted(self.arrivals, key=lambda arrival: arrival[0]):
            if time != last:
                steps.append({"at": f"{time}s", "apply": []})
                last = time
            steps[-1]["apply"].append(arriving)
        for time, leaving in self.arrivals:
            name = leaving["metadata"]["name"]
            if name in self.stays:
                gone = {"kind": leaving["kind"], "namespace": "default", "name": name}
                steps.append({"at": f"{time + self.stays[name]}s", "delete": gone})
        yield _object(API_VERSION, "Scenario", self.name, spec={"steps": steps})

    def write(self, stream: BinaryIO) -> None:
        """Write the documents as JSON lines."""
        for document in self.documents():
            stream.write(msgspec.json.encode(document) + b"\n")


DRIVER = "gpu.podium.dev"
"""The driver of the devices."""

DEVICE_CLASS = "gpu"
"""The class of the devices."""

_CAPACITY, _CLAIM = "milli", "gpu"
_RESOURCE = "resource.k8s.io/v1"
_DEFAULT = {"namespace": "default"}


def with_devices(trace: Trace) -> Trace:
    """Return the trace with ResourceSlices, a DeviceClass, and claims from a template for each size."""
    objects: list[Raw] = []
    slices: list[Raw] = []
    for raw in trace.objects:
        gpus = raw["status"]["allocatable"].get(GPU_MILLI, 0) if raw["kind"] == "Node" else 0
        if gpus:
            slices.append(_slice(raw, gpus // MILLI_PER_GPU))
            left = _without_gpus(raw["status"]["allocatable"])
            objects.append({**raw, "status": {"capacity": left, "allocatable": left}})
        else:
            objects.append(raw)
    arrivals = [(time, _claiming(raw)) for time, raw in trace.arrivals]
    sizes = sorted({_requested_gpus(raw) for _, raw in trace.arrivals} - {0})
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    class_ = _object(_RESOURCE, "DeviceClass", DEVICE_CLASS, spec={"selectors": selectors})
    return replace(trace, objects=[*objects, class_, *slices, *map(_template, sizes)], arrivals=arrivals)


def _without_gpus(amounts: Raw) -> Raw:
    return {name: amount for name, amount in amounts.items() if name != GPU_MILLI}


def _slice(node: Raw, gpus: int) -> Raw:
    name = node["metadata"]["name"]
    device = {
        "attributes": {"model": {"string": node["metadata"]["labels"].get(GPU_MODEL, "")}},
        "capacity": {_CAPACITY: {"value": str(MILLI_PER_GPU)}},
        "allowMultipleAllocations": True,
    }
    spec = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}", **device} for number in range(gpus)],
    }
    return _object(_RESOURCE, "ResourceSlice", f"{name}-gpus", spec=spec)


def _template(milli: int) -> Raw:
    """Return the claim template of an amount: a share of one device, or several whole ones."""
    exactly = {
        "deviceClassName": DEVICE_CLASS,
        "count": max(1, milli // MILLI_PER_GPU),
        "capacity": {"requests": {_CAPACITY: str(min(milli, MILLI_PER_GPU))}},
    }
    spec = {"spec": {"devices": {"requests": [{"name": _CLAIM, "exactly": exactly}]}}}
    return _object(_RESOURCE, "ResourceClaimTemplate", _template_name(milli), metadata=_DEFAULT, spec=spec)


def _template_name(milli: int) -> str:
    return f"gpu-{milli}m" if milli < MILLI_PER_GPU else f"gpus-{milli // MILLI_PER_GPU}"


def _requested_gpus(pod: Raw) -> int:
    """Return the thousandths of a GPU that a pod requests."""
    (container,) = pod["spec"]["containers"]
    return int(container["resources"]["requests"].get(GPU_MILLI, 0))


def _claiming(pod: Raw) -> Raw:
    """Return the pod with a claim instead of its GPU request."""
    milli = _requested_gpus(pod)
    if not milli:
        return pod
    (container,) = pod["spec"]["containers"]
    resources = {part: left for part, amounts in container["resources"].items() if (left := _without_gpus(amounts))}
    claimed = {**container, "resources": {**resources, "claims": [{"name": _CLAIM}]}}
    claims = [{"name": _CLAIM, "resourceClaimTemplateName": _template_name(milli)}]
    return {**pod, "spec": {**pod["spec"], "containers": [claimed], "resourceClaims": claims}}


SERVICE_SECONDS = 3_600
"""Pods that run at least so long are treated as services."""

_OWNER = "podium.dev/owner"
_BEST_EFFORT = "best-effort"


def with_owners(trace: Trace) -> Trace:
    """Return the trace with a workload for each pod, of the pod's name."""
    stays: dict[str, int] = {}
    arrivals = []
    for time, pod in trace.arrivals:
        seconds = parse_duration(pod["metadata"]["annotations"][DURATION]) // 10**9
        if seconds >= SERVICE_SECONDS and pod["spec"]["priorityClassName"] != _BEST_EFFORT:
            arrivals.append((time, _service(pod)))
            stays[pod["metadata"]["name"]] = seconds
        else:
            arrivals.append((time, _job(pod)))
    return replace(trace, arrivals=arrivals, stays=stays)


def _service(pod: Raw) -> Raw:
    name = pod["metadata"]["name"]
    labels = {_OWNER: name, **pod["metadata"]["labels"]}
    annotations = {key: value for key, value in pod["metadata"]["annotations"].items() if key != DURATION}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {**pod["spec"], "restartPolicy": "Always"},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {_OWNER: name}}, "template": template}
    return _object("apps/v1", "ReplicaSet", name, metadata={**_DEFAULT, "labels": labels}, spec=spec)


def _job(pod: Raw) -> Raw:
    """Return a Job whose pods' disruptions do not count as failures."""
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    metadata = {key: pod["metadata"][key] for key in ("labels", "annotations")}
    spec = {"podFailurePolicy": {"rules": [disrupted]}, "template": {"metadata": metadata, "spec": pod["spec"]}}
    own = {**_DEFAULT, "labels": metadata["labels"]}
    return _object("batch/v1", "Job", pod["metadata"]["name"], metadata=own, spec=spec)


def with_fewer_nodes(trace: Trace, share: float) -> Trace:
    """Return the trace with a share of the nodes, at least one, of each kind proportionally (largest remainders).

    Nodes of a kind offer the same and have the same labels, names aside. The first nodes of a kind stay.
    """
    kinds: defaultdict[bytes, list[str]] = defaultdict(list)
    for raw in trace.objects:
        if raw["kind"] == "Node":
            name = raw["metadata"]["name"]
            labels = {key: value for key, value in raw["metadata"]["labels"].items() if value != name}
            kind = msgspec.json.encode((labels, raw["status"]["allocatable"]), order="deterministic")
            kinds[kind].append(name)
    groups, exact = list(kinds.values()), Fraction(str(share))
    quotas = [len(group) * exact for group in groups]
    numbers = [int(quota) for quota in quotas]
    total = max(1, round(sum(quotas))) if groups else 0
    # Ties go to the first group.
    by_remainder = sorted(range(len(groups)), key=lambda index: (numbers[index] - quotas[index], index))
    for index in by_remainder[: total - sum(numbers)]:
        numbers[index] += 1
    kept = {name for names, number in zip(groups, numbers, strict=True) for name in names[:number]}
    objects = [raw for raw in trace.objects if raw["kind"] != "Node" or raw["metadata"]["name"] in kept]
    return replace(trace, objects=objects)


def sped_up(trace: Trace, factor: float) -> Trace:
    """Return the trace with arrivals so many times as fast, rounded down to seconds, and unchanged durations."""
    exact = Fraction(str(factor))
    return replace(trace, arrivals=[(int(time / exact), raw) for time, raw in trace.arrivals])
