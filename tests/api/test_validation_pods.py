"""Values of pods that kube-apiserver refuses, one rule per row, and values that it accepts."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.validation.objects import find_problems
from podium.api.validation.volumes import sources
from tests.api.manifests import GONE, Raw, changed, pod

HOST_PORT = {"containerPort": 80, "hostPort": 80}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
SELECTED_TWICE = {"matchLabels": {"app": ""}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
UNMOUNTED = {"resources": {"requests": {"storage": 1}}}
NEEDED = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
NODES = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def problems(raw: Raw) -> list[str]:
    return [str(one) for one in find_problems(raw)]


def file_key(**changes: str) -> dict[str, Any]:
    """Return changes by which a container has a variable from a file in a volume."""
    source = {"volumeName": "files", "path": "settings.env", "key": "A", **changes}
    volumes = [{"name": "files"}, {"name": "claim", "persistentVolumeClaim": {"claimName": "a"}}]
    return {"volumes": volumes, "containers.0.env": [{"name": "A", "valueFrom": {"fileKeyRef": source}}]}


# What is changed in the spec of a valid pod, and what kube-apiserver says to it.
REFUSED: list[tuple[dict[str, Any], str]] = [
    # Containers.
    ({"containers": []}, ".spec.containers: Required value"),
    ({"containers": GONE}, ".spec.containers: Required value"),
    ({"containers": "main"}, '.spec.containers: Invalid value: "main": must be a list'),
    ({"containers.0": "main"}, '.spec.containers[0]: Invalid value: "main": must be an object'),
    ({"containers.0.name": GONE}, ".spec.containers[0].name: Required value"),
    ({"containers.0.name": "Main"}, '.spec.containers[0].name: Invalid value: "Main" is not a valid name'),
    ({"containers.0.image": GONE}, ".spec.containers[0].image: Required value"),
    ({"containers.0.image": " app"}, '.image: Invalid value: " app": must not have leading or trailing whitespace'),
    ({"containers.0.imagePullPolicy": "Often"}, '.imagePullPolicy: Unsupported value: "Often": supported values: '),
    ({"containers.1": {"name": "main", "image": "b"}}, '.spec.containers[1].name: Duplicate value: "main"'),
    ({"initContainers": [{"name": "main", "image": "b"}]}, '.spec.initContainers[0].name: Duplicate value: "main"'),
    ({"containers.0.restartPolicy": "Sometimes"}, ".restartPolicy: Unsupported value"),
    (
        {"initContainers": [{"name": "i", "image": "b", "livenessProbe": {"exec": {"command": ["a"]}}}]},
        ".spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=",
    ),
    ({"ephemeralContainers": [{"name": "d", "image": "b"}]}, ".spec.ephemeralContainers: Forbidden: cannot be set on"),
    # Ports.
    ({"containers.0.ports": [{"containerPort": 0}]}, ".ports[0].containerPort: Required value"),
    ({"containers.0.ports": [{"containerPort": 70000}]}, ".containerPort: Invalid value: 70000: must be between 1 and"),
    ({"containers.0.ports": [{"containerPort": 1, "protocol": "tcp"}]}, '.protocol: Unsupported value: "tcp"'),
    (
        {"containers.0.ports": [{"containerPort": 1, "hostIP": "junk"}]},
        '.hostIP: Invalid value: "junk": must be a valid',
    ),
    ({"containers.0.ports": [HOST_PORT, HOST_PORT]}, '.ports[1].hostPort: Duplicate value: "TCP//80"'),
    (
        {"containers.0.ports": [HOST_PORT], "containers.1": {"name": "b", "image": "b", "ports": [HOST_PORT]}},
        '.spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
    ),
    ({"containers.0.ports": [{"containerPort": 1, "name": "WEB"}]}, '.ports[0].name: Invalid value: "WEB"'),
    (
        {"hostNetwork": True, "containers.0.ports": [{"containerPort": 80, "hostPort": 81}]},
        ".hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
    ),
    # Environment, mounts and probes.
    ({"containers.0.env": [{"value": "a"}]}, ".env[0].name: Required value"),
    ({"containers.0.env": [{"name": "A=B"}]}, '.env[0].name: Invalid value: "A=B"'),
    ({"containers.0.env": [{"name": "A", "valueFrom": {}}]}, ".env[0].valueFrom: Invalid value"),
    (
        {"containers.0.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.odd"}}}]},
        '.fieldPath: Unsupported value: "spec.odd"',
    ),
    (file_key(volumeName="other"), '.fileKeyRef.volumeName: Not found: "other"'),
    (file_key(volumeName="claim"), '.fileKeyRef.volumeName: Invalid value: "claim": referenced volume must be of type'),
    (file_key(path="a/../b"), '.fileKeyRef.path: Invalid value: "a/../b"'),
    (file_key(path=""), ".fileKeyRef.path: Required value"),
    (file_key(key="A="), '.fileKeyRef.key: Invalid value: "A="'),
    ({"containers.0.envFrom": [{}]}, ".envFrom[0]: Invalid value"),
    ({"containers.0.volumeMounts": [{"name": "a", "mountPath": "/a"}]}, '.volumeMounts[0].name: Not found: "a"'),
    (
        {"volumes": [{"name": "a"}], "containers.0.volumeMounts": [{"name": "a", "mountPath": "/a"}] * 2},
        '.volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
    ),
    ({"containers.0.livenessProbe": {}}, ".livenessProbe: Required value: must specify a handler type"),
    ({"containers.0.livenessProbe": {"tcpSocket": {}}}, ".livenessProbe.tcpSocket.port: Invalid value: 0"),
    (
        {"containers.0.livenessProbe": {"tcpSocket": {"port": 1}, "exec": {"command": ["a"]}}},
        ".livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
    ),
    (
        {"containers.0.livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
        ".livenessProbe.successThreshold: Invalid value: 2: must be 1",
    ),
    (
        {"containers.0.readinessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1}},
        ".readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
    ),
    # Volumes.
    ({"volumes": [{"emptyDir": {}}]}, ".spec.volumes[0].name: Required value"),
    ({"volumes": [{"name": "a"}, {"name": "a"}]}, '.spec.volumes[1].name: Duplicate value: "a"'),
    ({"volumes": [{"name": "A"}]}, '.spec.volumes[0].name: Invalid value: "A" is not a valid name'),
    (
        {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        ".spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
    ),
    ({"volumes": [{"name": "a", "image": {}}]}, ".spec.volumes[0].image.reference: Required value"),
    ({"volumes": [{"name": "a", "storageos": {}}]}, ".spec.volumes[0].storageos.volumeName: Required value"),
    ({"volumes": [{"name": "a", "storageos": {"volumeName": "A"}}]}, '.storageos.volumeName: Invalid value: "A"'),
    ({"volumes": [{"name": "a", "hostPath": {}}]}, ".spec.volumes[0].hostPath.path: Required value"),
    ({"volumes": [{"name": "a", "hostPath": {"path": "/../a"}}]}, ".hostPath.path: Invalid value"),
    ({"volumes": [{"name": "a", "persistentVolumeClaim": {}}]}, ".persistentVolumeClaim.claimName: Required value"),
    (
        {"volumes": [{"name": "a", "secret": {"secretName": "s", "defaultMode": 999}}]},
        ".defaultMode: Invalid value: 999",
    ),
    (
        {"volumes": [{"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "/k"}]}}]},
        '.configMap.items[0].path: Invalid value: "/k": must be a relative path',
    ),
    (
        {"volumes": [{"name": "a", "projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}]},
        ".sources[0]: Forbidden: may not specify more than 1 volume type per source",
    ),
    (
        {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": UNMOUNTED}}}]},
        ".volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
    ),
    # Resources.
    (
        {"containers.0.resources.requests.pods": 1},
        '.requests.pods: Invalid value: "pods": must be a standard resource fo',
    ),
    (
        {"containers.0.resources.requests.storage": "1Gi"},
        '.storage: Invalid value: "storage": must be a standard resource',
    ),
    (
        {"containers.0.resources.requests.cpu": "-1"},
        '.requests.cpu: Invalid value: "-1": must be greater than or equal',
    ),
    (
        {"containers.0.resources.limits": {"cpu": "500m"}},
        '.requests: Invalid value: "1": must be less than or equal to cpu',
    ),
    (
        {"containers/0/resources/requests/nvidia.com": 1},
        '.requests["nvidia.com"]: Invalid value: "nvidia.com": must be a standard resource for containers',
    ),
    (
        {"containers.0.resources": {"requests": {"nvidia.com/gpu": 1}}},
        ".resources.limits: Required value: Limit must be set for non overcommitable resources",
    ),
    (
        {"containers.0.resources": {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}},
        ".resources.requests: Invalid value: 1: must be equal to nvidia.com/gpu limit of 2",
    ),
    (
        {"containers.0.resources": {"limits": {"nvidia.com/gpu": "500m"}}},
        '.limits["nvidia.com/gpu"]: Invalid value: "500m": must be an integer',
    ),
    (
        {"containers.0.resources": {"limits": {"hugepages-2Mi": "4Mi"}}},
        ".spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
    ),
    (
        {"containers.0.resources.limits": {"hugepages-2Mi": "3Mi"}},
        '.limits["hugepages-2Mi"]: Invalid value: "3Mi": is not positive integer multiple of hugepages-2Mi',
    ),
    (
        {"containers.0.resources.claims": [{"name": "gpu"}]},
        '.claims[0]: Not found: "gpu": must be one of the names in pod',
    ),
    ({"resourceClaims": [{"name": "gpu"}]}, ".resourceClaims[0]: Invalid value: a list: exactly one of"),
    (
        {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        '.spec.resources.requests.cpu: Invalid value: "500m": must be greater than or equal to aggregate container',
    ),
    (
        {"resources": {"limits": {"cpu": 2, "nvidia.com/gpu": 1}}},
        '.spec.resources.limits["nvidia.com/gpu"]: Invalid value',
    ),
    # Where it runs.
    ({"nodeSelector": {"a b": "c"}}, '.spec.nodeSelector["a b"]: Invalid value: "a b" is not a valid key'),
    (
        {f"{NODES}.nodeSelectorTerms": []},
        ".nodeSelectorTerms: Required value: must have at least one node selector term",
    ),
    (
        {f"{NODES}.nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
        ".matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ),
    (
        {f"{NODES}.nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]},
        ".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
    ),
    (
        {f"{NODES}.nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}]},
        ".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ),
    (
        {f"{NODES}.nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "In", "values": ["b"]}]}]},
        '.matchFields[0].key: Invalid value: "a": not a valid field selector key',
    ),
    (
        {f"{NODES}.nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}]},
        '.matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
    ),
    (
        {NEEDED: [{"topologyKey": "a", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}}]},
        ".labelSelector.matchExpressions[0].values: Required value",
    ),
    ({NEEDED: [{"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "-"}}}]}, ".matchLabels.a: Invalid value"),
    ({NEEDED: [{**TERM, "mismatchLabelKeys": ["/"]}]}, "[0].mismatchLabelKeys[0]: Invalid value"),
    (
        {
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "-", "operator": "Exists"}]}}
            ]
        },
        "[0].preference.matchExpressions[0].key: Invalid value",
    ),
    ({"nodeName": "a b"}, '.spec.nodeName: Invalid value: "a b"'),
    ({"priorityClassName": "A"}, '.spec.priorityClassName: Invalid value: "A"'),
    ({"schedulingGates": [{"name": "a b"}]}, '.spec.schedulingGates[0]: Invalid value: "a b"'),
    ({"tolerations": [{"key": "a b"}]}, '.tolerations[0].key: Invalid value: "a b"'),
    ({"tolerations": [{"key": "a", "value": "x y"}]}, '.tolerations[0].value: Invalid value: "x y"'),
    # The feature gate of comparisons is off.
    ({"tolerations": [{"key": "a", "operator": "Gt", "value": "3"}]}, '.operator: Unsupported value: "Gt": supported'),
    (
        {"containers.0.resources.limits": {"hugepages-big": 1}},
        '.limits["hugepages-big"]: Invalid value: 1: is not posit',
    ),
    ({NEEDED: [{**TERM, "topologyKey": ""}]}, "[0].topologyKey: Required value: can not be empty"),
    ({NEEDED: [{**TERM, "namespaces": ["A"]}]}, "[0].namespaces[0]: Invalid value"),
    (
        {NEEDED: [{"topologyKey": "zone", "matchLabelKeys": ["a"]}]},
        "[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
    ),
    (
        {NEEDED: [{**TERM, "matchLabelKeys": ["app"]}]},
        '[0].matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector',
    ),
    (
        {NEEDED: [{**TERM, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}]},
        '[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys',
    ),
    (
        {
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 0, "podAffinityTerm": TERM}
            ]
        },
        "[0].weight: Invalid value: 0: must be in the range 1-100",
    ),
    ({"tolerations": [{"value": "a"}]}, ".tolerations[0].operator: Invalid value"),
    ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, '.tolerations[0].value: Invalid value: "b"'),
    ({"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, ".tolerations[0].effect: Invalid value"),
    (
        {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]},
        "[0].maxSkew: Invalid value: 0: must be greater than zer",
    ),
    ({"topologySpreadConstraints": [SPREAD, SPREAD]}, '[1]: Duplicate value: "{zone, DoNotSchedule}"'),
    ({"topologySpreadConstraints": [{**SPREAD, "minDomains": 0}]}, "[0].minDomains: Invalid value: 0"),
    (
        {"topologySpreadConstraints": [{**SPREAD, "matchLabelKeys": ["a"]}]},
        "[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
    ),
    (
        {"topologySpreadConstraints": [{**SPREAD, **TERM, "matchLabelKeys": ["app"]}]},
        '[0].matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector',
    ),
    (
        {"topologySpreadConstraints": [{**SPREAD, "labelSelector": SELECTED_TWICE, "matchLabelKeys": ["app"]}]},
        '[0].matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector',
    ),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, '.schedulingGates[1]: Duplicate value: "a"'),
    ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, ".spec.nodeName: Forbidden: cannot be set until all"),
    # The rest.
    ({"activeDeadlineSeconds": -1}, ".spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647"),
    ({"activeDeadlineSeconds": "soon"}, '.spec.activeDeadlineSeconds: Invalid value: "soon": must be a whole number'),
    ({"restartPolicy": "always"}, '.spec.restartPolicy: Unsupported value: "always"'),
    ({"preemptionPolicy": "Perhaps"}, '.spec.preemptionPolicy: Unsupported value: "Perhaps"'),
    ({"hostname": "A"}, ".spec.hostname: Invalid value"),
    ({"hostnameOverride": "a_b"}, ".spec.hostnameOverride: Invalid value"),
    ({"hostUsers": False, "hostNetwork": True}, ".spec.hostNetwork: Forbidden: when `pod.Spec.HostUsers` is false"),
    ({"runtimeClassName": "A"}, ".spec.runtimeClassName: Invalid value"),
    ({"dnsPolicy": "None"}, ".spec.dnsConfig.nameservers: Required value"),
    ({"dnsConfig": {"nameservers": ["a"]}}, '.spec.dnsConfig.nameservers[0]: Invalid value: "a": must be a valid IP'),
    ({"hostAliases": [{"ip": "1.2.3"}]}, '.spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address'),
    ({"securityContext": {"runAsUser": -1}}, ".spec.securityContext.runAsUser: Invalid value: -1: must be between 0"),
    ({"securityContext": {"seccompProfile": {}}}, ".seccompProfile.type: Required value"),
    (
        {"containers.0.securityContext": {"procMount": "Unmasked"}},
        '.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false',
    ),
    (
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a b", "whenUnsatisfiable": "DoNotSchedule"}]},
        '.topologySpreadConstraints[0].topologyKey: Invalid value: "a b"',
    ),
    ({"os": {"name": "plan9"}}, '.spec.os.name: Unsupported value: "plan9"'),
    (
        {"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}},
        ".spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
    ),
    ({"overhead": {"pods": 1}}, ".spec.overhead.pods: Invalid value"),
]


@pytest.mark.parametrize(("changes", "problem"), REFUSED, ids=[problem[:70] for _, problem in REFUSED])
def test_each_thing_that_kube_apiserver_refuses_in_a_pod_is_one_finding(changes: dict[str, Any], problem: str) -> None:
    raw = pod()
    found = problems({**raw, "spec": changed(raw["spec"], changes)})
    assert len(found) == 1, found
    assert problem in found[0]


TAKEN: list[dict[str, Any]] = [
    {},
    {"containers.0.resources": {}},
    {"containers.0.ports": [HOST_PORT, {**HOST_PORT, "protocol": "UDP"}]},
    {"containers.0.ports": [HOST_PORT, {**HOST_PORT, "hostIP": "010.0.0.1"}, {**HOST_PORT, "hostIP": "::1"}]},
    {"hostNetwork": True, "containers.0.ports": [{"containerPort": 80}]},
    # Containers before the others run one by one.
    {"initContainers": [{"name": name, "image": "i", "ports": [HOST_PORT]} for name in "ab"]},
    {"initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always", "startupProbe": {"grpc": {"port": 1}}}]},
    {"containers.0.resources": {"limits": {"nvidia.com/gpu": 1}}},
    {"containers.0.resources": {"limits": {"cpu": 1, "hugepages-2Mi": "4Mi"}}},
    {"containers.0.resources": {"requests": {"example.com/a": 1}, "limits": {"example.com/a": "1"}}},
    {"resources": {"limits": {"cpu": 2}}},
    {"resources": {"requests": {"cpu": 2, "memory": "2Gi"}}},
    # A volume without a source is an empty directory.
    {"volumes": [{"name": "a"}, {"name": "b", "emptyDir": {}}, {"name": "c", "csi": {"driver": "Files.Example.com"}}]},
    {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": 1}}}}}}]},
    {"topologySpreadConstraints": [SPREAD, {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"topologySpreadConstraints": [{**SPREAD, **TERM, "matchLabelKeys": ["hash"]}]},
    {"tolerations": [{"operator": "Exists"}, {"key": "a"}]},
    {"schedulingGates": [{"name": "example.com/a"}, {"name": "b"}]},
    {"preemptionPolicy": "NonPreemptible"},
    {"terminationGracePeriodSeconds": 0},
    {"os": {"name": "linux"}, "securityContext": {"runAsUser": 0}},
    {"dnsConfig": {"searches": [".", "a_b.example.com."]}},
    file_key(),
    file_key(path="conf/settings.env", key="a.b-c d"),
    {"containers.0.env": [
        {"name": "a.b-c", "value": ""},
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}},
    ]},
]  # fmt: skip


@pytest.mark.parametrize("changes", TAKEN, ids=str)
def test_objects_that_kube_apiserver_accepts_have_no_findings(changes: dict[str, Any]) -> None:
    raw = pod()
    assert problems({**raw, "spec": changed(raw["spec"], changes)}) == []


@pytest.mark.parametrize("source", sources("VolumeSource"))
def test_every_source_of_a_volume_has_rules(source: str) -> None:
    has_requirements = source not in ("emptyDir", "projected", "downwardAPI")

    assert bool(problems(pod(volumes=[{"name": "a", source: {}}]))) is has_requirements


def test_a_template_may_leave_the_image_of_a_volume_open() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod(volumes=[{"name": "a", "image": {}}])["spec"]}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}

    assert problems({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}) == []


def test_a_pod_that_was_in_a_cluster_may_have_what_a_new_one_cannot_ask_for() -> None:
    debugged = changed(pod(), {"metadata.uid": "1", "spec.ephemeralContainers": [{"name": "d", "image": "b"}]})
    assert problems(debugged) == []


def test_selectors_added_by_the_api_server_are_not_duplicated() -> None:
    merged = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    spread = {**SPREAD, "labelSelector": merged, "matchLabelKeys": ["app"]}
    assert problems(pod(topologySpreadConstraints=[spread])) == []


def test_alike_pods_are_validated_alike_under_their_own_names() -> None:
    def of_node(node: str, token: str, mounted: str) -> Raw:
        raw = pod(nodeName=node, volumes=[{"name": token, "projected": {"sources": []}}])
        return changed(raw, {"spec.containers.0.volumeMounts": [{"name": mounted, "mountPath": "/token"}]})

    assert problems(of_node("a", "kube-api-access-x1234", "kube-api-access-x1234")) == []
    assert problems(of_node("b", "kube-api-access-y1234", "kube-api-access-y1234")) == []
    assert len(problems(of_node("b", "kube-api-access-y1234", "kube-api-access-x1234"))) == 1
    assert len(problems(of_node("B", "kube-api-access-y1234", "kube-api-access-y1234"))) == 1
    assert len(problems(of_node("b", "kube-api-access-Y1234", "kube-api-access-Y1234"))) == 1


def test_a_pod_with_label_keys_is_judged_by_its_own_labels_however_often_its_specification_was_seen() -> None:
    merged = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    web = pod(topologySpreadConstraints=[{**SPREAD, "labelSelector": merged, "matchLabelKeys": ["app"]}])
    for _ in range(2):
        assert problems(web) == []
        found = problems(changed(web, {"metadata.labels": {"app": "other"}}))
        assert [problem for problem in found if "exists in both matchLabelKeys and labelSelector" in problem]


def test_one_object_has_a_hundred_findings_at_most() -> None:
    assert len(problems(pod(tolerations=[{"value": str(number)} for number in range(1_000)]))) == 100


def test_a_specification_is_judged_by_what_it_belongs_to_however_often_it_was_seen() -> None:
    debugged = changed(pod(), {"spec.ephemeralContainers": [{"name": "debug", "image": "b"}]})
    template = {"metadata": {"labels": debugged["metadata"].get("labels", {})}, "spec": debugged["spec"]}
    spec = {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    for _ in range(2):
        assert problems(changed(debugged, {"metadata.uid": "u"})) == []
        assert [problem for problem in problems(debugged) if "cannot be set on create" in problem]
        assert [problem for problem in problems(deployment) if "not allowed in pod template" in problem]
