"""What people call the kinds beside their names, and in which order API servers tell their groups.

Source: pkg/registry (ShortNames and Categories of each storage), pkg/controlplane (the priorities of the groups).
"""

from __future__ import annotations

# kubectl takes the first kind that a short name fits, in the order of discovery.
_SHORT_NAMES = {
    ("", "ComponentStatus"): ("cs",),
    ("", "ConfigMap"): ("cm",),
    ("", "Endpoints"): ("ep",),
    ("", "Event"): ("ev",),
    ("", "LimitRange"): ("limits",),
    ("", "Namespace"): ("ns",),
    ("", "Node"): ("no",),
    ("", "PersistentVolume"): ("pv",),
    ("", "PersistentVolumeClaim"): ("pvc",),
    ("", "Pod"): ("po",),
    ("", "ReplicationController"): ("rc",),
    ("", "ResourceQuota"): ("quota",),
    ("", "Service"): ("svc",),
    ("", "ServiceAccount"): ("sa",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("crd", "crds"),
    ("apps", "DaemonSet"): ("ds",),
    ("apps", "Deployment"): ("deploy",),
    ("apps", "ReplicaSet"): ("rs",),
    ("apps", "StatefulSet"): ("sts",),
    ("autoscaling", "HorizontalPodAutoscaler"): ("hpa",),
    ("batch", "CronJob"): ("cj",),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("csr",),
    ("events.k8s.io", "Event"): ("ev",),
    ("networking.k8s.io", "IPAddress"): ("ip",),
    ("networking.k8s.io", "Ingress"): ("ing",),
    ("networking.k8s.io", "NetworkPolicy"): ("netpol",),
    ("podium.dev", "DisruptionPolicy"): ("dpol",),
    ("policy", "PodDisruptionBudget"): ("pdb",),
    ("scheduling.k8s.io", "PriorityClass"): ("pc",),
    ("storage.k8s.io", "StorageClass"): ("sc",),
    ("storage.k8s.io", "VolumeAttributesClass"): ("vac",),
}
_CATEGORIES = {
    "all": (
        ("", "Pod"),
        ("", "ReplicationController"),
        ("", "Service"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("batch", "CronJob"),
        ("batch", "Job"),
    ),
    "api-extensions": (
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
    ),
}
_GROUPS = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
# What is served for others comes last.
_LAST_GROUP = "metrics.k8s.io"
_RANK_OF = {group: rank for rank, group in enumerate(_GROUPS)}


def short_names(group: str, kind: str) -> tuple[str, ...]:
    """What people may write for the kind's plural."""
    return _SHORT_NAMES.get((group, kind), ())


def categories(group: str, kind: str) -> tuple[str, ...]:
    """The words for many kinds that stand for this one too, such as `all`."""
    return tuple(name for name, kinds in _CATEGORIES.items() if (group, kind) in kinds)


def group_order(group: str) -> tuple[int, bool, str]:
    """By what groups are ordered: Kubernetes' own as it orders them, then others by name, then the metrics."""
    return (_RANK_OF.get(group, len(_GROUPS)), group == _LAST_GROUP, group)
