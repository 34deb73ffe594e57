"""The openb trace: a production GPU cluster (Alibaba cluster-trace-gpu-v2023) as nodes and arriving pods.

nodes.csv has `sn, cpu_milli, memory_mib, gpu, model`; pods.csv has `name, cpu_milli, memory_mib, num_gpu, gpu_milli`
(the share of a GPU where `num_gpu` is 1), `gpu_spec` (the models allowed, as in `A|B`), `qos`, and `creation_time,
deletion_time, scheduled_time` in seconds, the last empty where the pod never ran.
"""

from __future__ import annotations

from podium.api.errors import shown
from podium.api.input.files import FileName
from podium.api.meta import Raw
from podium.api.names import label_value_problem, subdomain_problem
from podium.machines.kubelets.pod_annotations import DURATION
from podium.sim.traces.table import Row, read_table
from podium.sim.traces.trace import Trace

GPU_MODEL = "podium.dev/gpu-model"
"""The node label with the model of the node's GPUs."""

GPU_MILLI = "podium.dev/gpu-milli"
"""The extended resource that stands for GPUs, 1000 of it for one; so pods share GPUs as if a node had one large one."""

MILLI_PER_GPU = 1_000
"""So much of that resource is one GPU."""

PRIORITIES = {"production": 100_000, "mid": 50_000, "best-effort": 0}
"""The priority classes of the pods, with their values."""

_CLASS_OF_QOS = {"LS": "production", "Guaranteed": "production", "Burstable": "mid", "BE": "best-effort"}
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
# The kubelet's own default, since the trace does not say.
_PODS_PER_NODE = 110


def read_trace(nodes: FileName, pods: FileName) -> Trace:
    """The trace of the two files. Raises InputError with file, line and column for what is wrong in them."""
    classes = [_priority_class(name, value) for name, value in PRIORITIES.items()]
    node_rows = _named(nodes, _NODE_COLUMNS, "sn")
    pod_rows = _named(pods, _POD_COLUMNS, "name")
    return Trace(
        name="openb",
        objects=[*classes, *(_node(row) for row in node_rows)],
        arrivals=[(row.whole("creation_time"), _pod(row)) for row in pod_rows],
    )


def _named(file: FileName, columns: tuple[str, ...], name_column: str) -> list[Row]:
    """The rows of a file, of which each has a good name of its own."""
    rows: dict[str, Row] = {}
    for row in read_table(file, columns):
        name = row.text(name_column)
        problem = subdomain_problem(name)
        if problem is not None:
            raise row.error(name_column, problem)
        if rows.setdefault(name, row) is not row:
            raise row.error(name_column, f"{shown(name)} is given twice, first in line {rows[name].line}")
    return list(rows.values())


def _priority_class(name: str, value: int) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _node(row: Row) -> Raw:
    name, model = row.text("sn"), row.text("model")
    labels = {"kubernetes.io/hostname": name}
    if model:
        labels[GPU_MODEL] = _model(row, "model", model)
    allocatable: Raw = {
        "cpu": f"{row.whole('cpu_milli')}m",
        "memory": f"{row.whole('memory_mib')}Mi",
        "pods": _PODS_PER_NODE,
    }
    if row.whole("gpu"):
        allocatable[GPU_MILLI] = row.whole("gpu") * MILLI_PER_GPU
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": allocatable, "allocatable": allocatable},
    }


def _pod(row: Row) -> Raw:
    qos = row.text("qos")
    if qos not in _CLASS_OF_QOS:
        raise row.error("qos", f"{shown(qos)} is not one of {', '.join(_CLASS_OF_QOS)}")
    requests = _requests(row)
    resources = {"requests": requests, "limits": requests} if qos == "Guaranteed" else {"requests": requests}
    if GPU_MILLI in requests:
        # The API server wants a limit for extended resources, equal to the request.
        resources = {**resources, "limits": {GPU_MILLI: requests[GPU_MILLI], **resources.get("limits", {})}}
    spec: Raw = {
        "priorityClassName": _CLASS_OF_QOS[qos],
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "openb", "resources": resources}],
    }
    if row.text("gpu_spec"):
        spec["affinity"] = {"nodeAffinity": _needs_model(row)}
    metadata = {"name": row.text("name"), "labels": {"podium.dev/qos": qos}, "annotations": {DURATION: _duration(row)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _requests(row: Row) -> Raw:
    requests: Raw = {"cpu": f"{row.whole('cpu_milli')}m", "memory": f"{row.whole('memory_mib')}Mi"}
    gpus, share = row.whole("num_gpu"), row.whole("gpu_milli")
    if gpus == 1 and not 0 < share <= MILLI_PER_GPU:
        raise row.error("gpu_milli", f"{share} is no share of one GPU; it is from 1 to {MILLI_PER_GPU}")
    if gpus:
        requests[GPU_MILLI] = share if gpus == 1 else gpus * MILLI_PER_GPU
    return requests


def _needs_model(row: Row) -> Raw:
    models = [_model(row, "gpu_spec", model) for model in row.text("gpu_spec").split("|")]
    requirement = {"key": GPU_MODEL, "operator": "In", "values": models}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _model(row: Row, column: str, model: str) -> str:
    problem = label_value_problem(model) if model else "a model's name is empty"
    if problem is not None:
        raise row.error(column, problem)
    return model


def _duration(row: Row) -> str:
    """How long the pod ran, or waited where it never ran."""
    began, column = row.whole_or_none("scheduled_time"), "scheduled_time"
    if began is None:
        began, column = row.whole("creation_time"), "creation_time"
    ended = row.whole("deletion_time")
    if ended < began:
        raise row.error("deletion_time", f"{ended} is before {column}, {began}")
    return f"{ended - began}s"
