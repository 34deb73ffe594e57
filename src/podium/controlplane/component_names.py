"""The names of a control plane's components, for modules that do not create them."""

from __future__ import annotations

SCHEDULER = "scheduler"
AUTOSCALER = "autoscaler"
RESCHEDULER = "rescheduler"
KUBELET = "kubelet"
NODE_LIFECYCLE = "node-lifecycle-controller"
ENDPOINTS = "endpointslice-controller"
RESCHEDULER_CONFIG_MAP = "kube-system/podium-rescheduler"
"""The ConfigMap from which a control plane's rescheduler reads its configuration at run time."""

GARBAGE_COLLECTOR = "garbage-collector"
NAMESPACE_CONTROLLER = "namespace-controller"
POD_COLLECTOR = "pod-garbage-collector"

CONTROLLERS = (
    NODE_LIFECYCLE,
    "taint-eviction-controller",
    POD_COLLECTOR,
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "resource-claim-controller",
    "ephemeral-volume-controller",
    "persistentvolume-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "podgroup-protection-controller",
    "default-budget-controller",
    "disruption-controller",
    "avoid-list-controller",
    ENDPOINTS,
)
"""The controllers that a runtime runs, in the order in which they act at the same instant."""

SERVING = frozenset((ENDPOINTS,))
"""The controllers that only served clusters have, because no decision depends on what they write."""

SERVICE_ACCOUNTS = "serviceaccount-controller"
ROOT_CA_PUBLISHER = "root-ca-certificate-publisher-controller"
ROLE_AGGREGATION = "clusterrole-aggregation-controller"

COLLECTORS = (GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER, SERVICE_ACCOUNTS, ROOT_CA_PUBLISHER, ROLE_AGGREGATION)
"""The controllers that work on the store itself (`podium.controlplane.required_objects`, `podium.store.cleanup`)."""

SWITCHABLE = (SCHEDULER, KUBELET, *CONTROLLERS, *COLLECTORS)
"""The components that can be left out, so that another process replaces them: `--no-NAME`."""
