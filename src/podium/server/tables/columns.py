"""Tables of objects, with the columns of `kubectl get` (pkg/printers/internalversion/printers.go).

The columns of built-in kinds are given as text:

    [apps]
    ReplicaSet: Name
      Desired:integer = number .spec.replicas | The desired number of pods.
      Age Containers Images Selector

An API group (`core` is the one without a name), and its kinds with their first columns. A line without `=` lists
columns that kinds share. Age comes last, unless it is listed before or the first line ends with `-Age`. Any other line
is a column: its title, `+` if only `-o wide` shows it, and `:` with a type or format other than plain text; then one of
`CELL_FUNCTIONS` with arguments, of which those that begin with a dot are paths; then its description. Columns without a
function are those of kinds with a function for whole rows (`_ROWS`).
The columns of DisruptionPolicies and PodGroups are Podium's own, and so are the rates of budgets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.server.tables.cell_functions import CELL_FUNCTIONS
from podium.server.tables.cells import AGE, NAME, Cell, Printer, TableColumn, completion, event_row, pod_row
from podium.server.tables.custom import custom_printer
from podium.store.api_resources import APIResource
from podium.store.errors import bad_request

_COLUMNS = """
[core]
ConfigMap: Name
  Data = entry_count | The number of entries.
Endpoints: Name
  Endpoints = endpoints | The addresses behind the service.
Event, events.k8s.io/Event: -Age
  Last Seen = | The time since the last occurrence.
  Type = | Normal or Warning.
  Reason = | The reason, in one word.
  Object = | The object of the event.
  Subobject+ = | The part of the object.
  Source+ = | The reporting component.
  Message = | A description of the event.
  First Seen+ = | The time since the first occurrence.
  Count+ = | The number of occurrences.
  Name+:name = | The name of the object, unique for its kind and namespace.
Namespace: Name
  Status = text .status.phase | Whether the namespace is active or terminating.
Node: Name
  Status = node_status | Whether the node is ready, and whether pods are scheduled to it.
  Roles = node_roles | The roles of the node, from its labels.
  Age
  Version = text .status.nodeInfo.kubeletVersion | The version of the node's kubelet.
  Internal-IP+ = node_address InternalIP | The node's address within the cluster.
  External-IP+ = node_address ExternalIP | The node's external address.
  OS-Image+ = text .status.nodeInfo.osImage <unknown> | The operating system of the node.
  Kernel-Version+ = text .status.nodeInfo.kernelVersion <unknown> | The kernel of the node.
  Container-Runtime+ = text .status.nodeInfo.containerRuntimeVersion <unknown> | The runtime of the node's containers.
PersistentVolume: Name
  Capacity = text .spec.capacity.storage 0 | The size of the volume.
  Access Modes = access_modes .spec.accessModes | The ways in which the volume can be mounted.
  Reclaim Policy = text .spec.persistentVolumeReclaimPolicy |
    The treatment of the volume after the deletion of its claim.
  Status = volume_phase | Whether the volume is bound.
  Claim = reference_in_namespace .spec.claimRef | The claim that the volume is bound to.
  StorageClass = storage_class | The storage class of the volume.
  VolumeAttributesClass = text .spec.volumeAttributesClassName <unset> | The class of the volume's attributes.
  Reason = text .status.reason | The reason of the volume's state.
  Age
  VolumeMode+ = text .spec.volumeMode <unset> | Whether the volume is a file system or a block device.
PersistentVolumeClaim: Name
  Status = volume_phase | Whether the claim is bound.
  Volume = text .spec.volumeName | The volume that the claim is bound to.
  Capacity = bound_capacity | The size of that volume.
  Access Modes = bound_modes | The ways in which that volume can be mounted.
  StorageClass = storage_class | The storage class that the claim requests.
  VolumeAttributesClass = text .spec.volumeAttributesClassName <unset> | The class of the volume's attributes.
  Age
  VolumeMode+ = text .spec.volumeMode <unset> | Whether the volume is a file system or a block device.
Pod: Name
  Ready = | The number of the pod's ready containers.
  Status = | A summary of the state of the pod's containers.
  Restarts = | The number of restarts of the pod's containers, and the time since the last one.
  Age
  IP+ = | The address of the pod.
  Node+ = | The node that the pod is bound to.
  Nominated Node+ = | The node of the pod's nomination.
  Readiness Gates+ = | The number of the pod's readiness gates that are true.
PodTemplate: Name -Age
  Containers+ = joined .template.spec.containers name | The names of the containers in the template.
  Images+ = joined .template.spec.containers image | The images of the containers in the template.
  Pod Labels = labels .template.metadata.labels | The labels of the template.
ReplicationController: Name
  Desired:integer = number .spec.replicas | The desired number of pods.
  Current:integer = number .status.replicas | The current number of pods.
  Ready:integer = number .status.readyReplicas | The number of ready pods.
  Age Containers Images
  Selector+ = labels .spec.selector | The selector of the object's pods.
ResourceQuota: Name Age
  Request = quota_usage requests | The used and the allowed amount of each resource.
  Limit = quota_usage limits | The used and the allowed amount of each limit of containers.
Secret: Name
  Type = text .type Opaque | The purpose of the entries.
  Data = count .data | The number of entries.
Service: Name
  Type = text .spec.type ClusterIP | The type of the service.
  Cluster-IP = cluster_address | The service's address within the cluster.
  External-IP = external_addresses | The service's external addresses.
  Port(s) = service_ports | The ports of the service.
  Age
  Selector+ = labels .spec.selector | The selector of the service's pods.
ServiceAccount: Name
  Secrets = count .secrets | The number of secrets of the account.
[admissionregistration.k8s.io]
MutatingWebhookConfiguration, ValidatingWebhookConfiguration: Name
  Webhooks:integer = count .webhooks | The number of webhooks.
[apiregistration.k8s.io]
APIService: Name
  Service = reference_in_namespace .spec.service Local | The service that serves the version.
  Available = availability | Whether the version is served.
[apps]
ControllerRevision: Name
  Controller = controller | The controller that owns the revision.
  Revision = number .revision | The number of the revision.
DaemonSet: Name
  Desired:integer = number .status.desiredNumberScheduled | The number of nodes that should have a pod.
  Current:integer = number .status.currentNumberScheduled | The number of nodes that have a pod.
  Ready:integer = number .status.numberReady | The number of nodes with a ready pod.
  Up-to-date:integer = number .status.updatedNumberScheduled | The number of nodes with a pod of the current template.
  Available:integer = number .status.numberAvailable | The number of nodes with a pod that is available.
  Node Selector = labels .spec.template.spec.nodeSelector | The selector of nodes that should have a pod.
  Age Containers Images Selector
Deployment: Name
  Ready = ready_replicas | The number of ready pods, and the desired number.
  Up-to-date = number .status.updatedReplicas | The number of pods of the current template.
  Available = number .status.availableReplicas | The number of available pods.
  Age Containers Images Selector
ReplicaSet: Name
  Desired:integer = number .spec.replicas | The desired number of pods.
  Current:integer = number .status.replicas | The current number of pods.
  Ready:integer = number .status.readyReplicas | The number of ready pods.
  Age Containers Images Selector
StatefulSet: Name
  Ready = ready_replicas | The number of ready pods, and the desired number.
  Age Containers Images
[autoscaling]
HorizontalPodAutoscaler: Name
  Reference = reference .spec.scaleTargetRef | The scaled object.
  Targets = autoscaler_targets | The measured value and the target of each metric.
  MinPods = text .spec.minReplicas <unset> | The minimum number of pods.
  MaxPods = number .spec.maxReplicas | The maximum number of pods.
  Replicas = number .status.currentReplicas | The current number of pods.
[batch]
CronJob: Name
  Schedule = text .spec.schedule | The schedule in cron format.
  Timezone = text .spec.timeZone <none> | The time zone of the schedule.
  Suspend:boolean = suspension | Whether no further jobs are created.
  Active:integer = count .status.active | The number of running jobs.
  Last Schedule = since .status.lastScheduleTime | The time since a job was last created.
  Age
  Containers+ = joined .spec.jobTemplate.spec.template.spec.containers name |
    The names of the containers in the template.
  Images+ = joined .spec.jobTemplate.spec.template.spec.containers image | The images of the containers in the template.
  Selector+ = selector .spec.jobTemplate.spec.selector | The selector of the object's pods.
Job: Name
  Status = job_status | Whether the job runs, or how it ended.
  Completions = job_completions | The number of succeeded pods, and the desired number.
  Duration = job_duration | The duration of the job so far.
  Age Containers Images Selector
[certificates.k8s.io]
CertificateSigningRequest: Name Age
  SignerName = text .spec.signerName <none> | The requested signer.
  Requestor = text .spec.username | The user that made the request.
  RequestedDuration = requested_duration | The requested validity.
  Condition = request_condition | Whether it was approved, and the certificate issued.
[coordination.k8s.io]
Lease: Name
  Holder = text .spec.holderIdentity | The holder of the lease.
[discovery.k8s.io]
EndpointSlice: Name
  AddressType = text .addressType | The type of the addresses.
  Ports = slice_ports | The ports of the addresses.
  Endpoints = slice_addresses | The addresses behind the service.
[flowcontrol.apiserver.k8s.io]
FlowSchema: Name
  PriorityLevel = text .spec.priorityLevelConfiguration.name | The priority level of the flow's requests.
  MatchingPrecedence = number .spec.matchingPrecedence |
    Of several matching flows the one with the lowest number is used.
  DistinguisherMethod = text .spec.distinguisherMethod.type <none> | The property of requests that distinguishes flows.
  Age
  MissingPL = condition Dangling ? | Whether the priority level does not exist.
PriorityLevelConfiguration: Name
  Type = text .spec.type | Whether requests of the level are limited.
  NominalConcurrencyShares = text .spec.limited.nominalConcurrencyShares <none> |
    The level's share of the requests in flight.
  Queues = text .spec.limited.limitResponse.queuing.queues <none> | The number of queues of the level.
  HandSize = text .spec.limited.limitResponse.queuing.handSize <none> | The number of queues that a flow may use.
  QueueLengthLimit = text .spec.limited.limitResponse.queuing.queueLengthLimit <none> |
    The number of requests that may wait in a queue.
[networking.k8s.io]
Ingress: Name
  Class = text .spec.ingressClassName <none> | The class of the ingress.
  Hosts = ingress_hosts | The hosts that the rules match.
  Address = load_balancer | The addresses of the load balancer.
  Ports = ingress_ports | The ports of the ingress.
IngressClass: Name
  Controller = text .spec.controller | The controller of the class's ingresses.
  Parameters = ingress_parameters | The object with further parameters of the controller.
NetworkPolicy: Name
  Pod-Selector = selector .spec.podSelector | The selector of the policy's pods.
[node.k8s.io]
RuntimeClass: Name
  Handler = text .handler | The handler that runs pods of the class.
[podium.dev]
DisruptionPolicy: Name
  Priorities = policy_priorities | The priority classes, highest first.
  Several-Budgets = text .spec.severalBudgets Refuse | The treatment of pods with several budgets.
  Caps = policy_caps | The disruptions that components may cause in a period.
  Age
  Default-Budgets+:integer = count .spec.defaultBudgets | The number of budgets for workloads without one.
  Budget-Bounds+:integer = count .spec.budgetBounds | The number of bounds on the strictness of budgets.
  Avoid-For+ = text .spec.avoidLists.expireAfter 1h | The duration of a controller's entry in the avoid list of a node.
[policy]
PodDisruptionBudget: Name
  Min Available = text .spec.minAvailable N/A | The number of pods that must stay up.
  Max Unavailable = text .spec.maxUnavailable N/A | The number of pods that may be down.
  Allowed Disruptions:integer = number .status.disruptionsAllowed |
    The number of pods that may be disrupted, without regard to the rate.
  Age
  Rate = budget_rate all | The number of disruptions that the budget allows in a period.
  Rate Left = budget_rate left | The number of disruptions that the rate allows now.
[rbac.authorization.k8s.io]
ClusterRoleBinding, RoleBinding: Name
  Role = reference .roleRef | The role that the binding grants.
  Age
  Users+ = subjects User | The users that have the role.
  Groups+ = subjects Group | The groups that have the role.
  ServiceAccounts+ = subjects ServiceAccount | The service accounts that have the role.
[resource.k8s.io]
DeviceClass, DeviceTaintRule, ResourceClaimTemplate: Name
ResourceClaim: Name
  State = claim_state | Whether devices are allocated to the claim, and reserved.
ResourceSlice: Name
  Node = text .spec.nodeName | The node that has the devices.
  Driver = text .spec.driver | The driver of the devices.
  Pool = text .spec.pool.name | The pool that the devices belong to.
[scheduling.k8s.io]
PodGroup: Name
  Policy = gang | Whether the pods are scheduled all or none (Gang).
  Min Count = gang_count | The number of pods that are placed together, or none.
  Workload = text .spec.podGroupTemplateRef.workload.workloadName <none> |
    The workload that has the template of the group.
  Template = text .spec.podGroupTemplateRef.workload.podGroupTemplateName <none> | The template of the group.
  Scheduled = condition PodGroupScheduled <none> | Whether the group was scheduled.
PriorityClass: Name
  Value:integer = number .value | The priority of the class's pods.
  Global-Default:boolean = flag .globalDefault | Whether pods that name no class belong to this one.
  Age
  PreemptionPolicy = preemption_policy | Whether pods of the class preempt others, and can be preempted.
Workload: Name
[storage.k8s.io]
CSIDriver: Name
  AttachRequired:boolean = attach_required | Whether volumes have to be attached.
  PodInfoOnMount:boolean = flag .spec.podInfoOnMount | Whether the driver receives data about the pod.
  StorageCapacity:boolean = flag .spec.storageCapacity | Whether scheduling takes the remaining capacity into account.
  TokenRequests = token_requests | The audiences of the pod's tokens that the driver gets.
  RequiresRepublish:boolean = flag .spec.requiresRepublish | Whether volumes are published periodically.
  Modes = lifecycle_modes | The kinds of volumes that the driver supports.
CSINode: Name
  Drivers:integer = count .spec.drivers | The number of drivers on the node.
CSIStorageCapacity: Name -Age
  StorageClassName = text .storageClassName | The storage class of the capacity.
  Capacity = text .capacity <unset> | The available capacity.
StorageClass:
  Name:name = class_name | The name of the object, unique for its kind and namespace.
  Provisioner = text .provisioner | The provisioner of the class's volumes.
  ReclaimPolicy = text .reclaimPolicy Delete | The treatment of volumes after the deletion of their claims.
  VolumeBindingMode = text .volumeBindingMode Immediate | The time at which claims are bound to volumes of the class.
  AllowVolumeExpansion = flag .allowVolumeExpansion | Whether claims of the class can grow.
VolumeAttachment: Name
  Attacher:name = text .spec.attacher | The driver that attaches the volume.
  PV = text .spec.source.persistentVolumeName | The volume.
  Node = text .spec.nodeName | The node that the volume is attached to.
  Attached:boolean = flag .status.attached | Whether the volume is attached.
VolumeAttributesClass: Name
  DriverName = text .driverName | The driver of the attributes.
"""

_COLUMN = re.compile(r"  ([^=+:]+)(\+?):?(\w*) =([^|]*)\| (.+)")


def _columns(line: str, shared: Mapping[str, TableColumn]) -> list[TableColumn]:
    """Return the columns of a line of the notation."""
    found = _COLUMN.fullmatch(line)
    if found is None:
        return [shared[name] for name in line.split()]
    title, is_wide, form, cell, description = found.groups()
    type_, format_ = (form, "") if form in ("boolean", "integer") else ("string", form)
    return [TableColumn(title, description, _cell(*cell.split()), type_, format_, 1 if is_wide else 0)]


def _cell(function: str = "", *arguments: str) -> Cell:
    """Return the cell function of a name with its arguments."""
    given = [tuple(argument[1:].split(".")) if argument[0] == "." else argument for argument in arguments]
    call = CELL_FUNCTIONS[function]
    return lambda raw, now: call(raw, now, *given)


_SHARED_COLUMNS = """
  Containers+ = joined .spec.template.spec.containers name | The names of the containers in the template.
  Images+ = joined .spec.template.spec.containers image | The images of the containers in the template.
  Selector+ = selector .spec.selector | The selector of the object's pods.
"""
_SHARED = {column.name: column for line in _SHARED_COLUMNS.strip("\n").splitlines() for column in _columns(line, {})}
_SHARED |= {"Name": NAME, "Age": AGE}
_ROWS: Mapping[str, Mapping[str, Any]] = {
    "Event": {"row": event_row},
    "Pod": {"row": pod_row, "conditions": completion},
}


def _printers() -> Mapping[tuple[str, str], Printer]:
    printers: dict[tuple[str, str], Printer] = {}
    for section in _COLUMNS.replace("\n    ", " ").strip().removeprefix("[").split("\n["):
        group, _, kinds = section.partition("]\n")
        for written in re.split(r"\n(?! )", kinds):
            head, *lines = written.splitlines()
            names, _, first = head.partition(":")
            listed = [column for line in (first.removesuffix("-Age"), *lines) for column in _columns(line, _SHARED)]
            if AGE not in listed and not first.endswith("-Age"):
                listed.append(AGE)
            for name in names.split(", "):
                other_group, _, kind = name.rpartition("/")
                of = other_group or group.removeprefix("core"), kind
                printers[of] = Printer(tuple(listed), **_ROWS.get(kind, {}))
    return printers


PRINTERS = _printers()
"""The table printers of the built-in kinds, by group and kind."""

_META = "meta.k8s.io/v1"
_CREATED = TableColumn("Created At", "The time of creation.", _cell("text", ".metadata.creationTimestamp"), "date")
_GENERIC = Printer((NAME, _CREATED))
BUDGET = TableColumn("Budget", "The disruption budgets that select the pod.", _cell(), priority=1)
"""The last column of pods, whose cells depend on other objects."""


def table_of(resource: APIResource, objects: Iterable[Raw], now: int, include_object: str = "") -> Raw:
    """Return the objects as a Table, without list metadata.

    `include_object` says which object data each row has: None, Metadata (as does "") or Object. Raises StoreError 400
    for any other value.
    """
    if include_object not in ("", "None", "Metadata", "Object"):
        raise bad_request(f"includeObject: {shown(include_object)} is not one of None, Metadata, Object")
    printer = PRINTERS.get((resource.group, resource.kind), _GENERIC)
    if resource.is_custom and printer is _GENERIC:
        printer = custom_printer(msgspec.json.encode(resource.columns.get(resource.api_version, ())))
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": {},
        "columnDefinitions": [column.to_dict() for column in printer.columns],
        "rows": [_row(printer, raw, now, include_object) for raw in objects],
    }


def _row(printer: Printer, raw: Raw, now: int, include_object: str) -> Raw:
    row: Raw = {"cells": list(printer.cells(raw, now))}
    conditions = printer.conditions(raw)
    if conditions:
        row["conditions"] = conditions
    if include_object == "Object":
        row["object"] = raw
    elif include_object != "None":
        metadata = raw.get("metadata", {})
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}
    return row
