"""The names of the components that a control plane consists of, for whoever has to name them without making them."""

from __future__ import annotations

SCHEDULER = "scheduler"
AUTOSCALER = "autoscaler"
RESCHEDULER = "rescheduler"
KUBELET = "kubelet"
NODE_LIFECYCLE = "node-lifecycle-controller"
RESCHEDULER_CONFIG_MAP = "kube-system/podium-rescheduler"
"""The ConfigMap from which a control plane's rescheduler reads its configuration while it runs."""

GARBAGE_COLLECTOR = "garbage-collector"
NAMESPACE_CONTROLLER = "namespace-controller"

CONTROLLERS = (
    NODE_LIFECYCLE,
    "taint-eviction-controller",
    "pod-garbage-collector",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "resource-claim-controller",
    "ephemeral-volume-controller",
    "persistentvolume-controller",
    "default-budget-controller",
    "disruption-controller",
    "avoid-list-controller",
)
"""The controllers that are machines, in the order in which they act that are due at one instant."""

COLLECTORS = (GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER)
"""Those that stand in the store (`podium.store.controllers`)."""

SWITCHABLE = (SCHEDULER, KUBELET, *CONTROLLERS, *COLLECTORS)
"""Whoever can be left out, so that another does its work: `--no-NAME`."""
