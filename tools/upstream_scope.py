"""The groups of Kubernetes' own tests that `podium up` is not meant to pass, each with its reason.

`tools/reference.py` makes docs/reference/upstream-tests.md of it. Paths are those of Kubernetes v1.36. A group that is
not listed is in scope, the rest of a group that is listed in part included.
"""

from __future__ import annotations

from pathlib import Path

REASONS = {
    "process": (
        "needs a process, a file or an image in a container",
        "`podium up` starts none; `pods/log`, `exec`, `attach` and `portforward` are answered with 501",
    ),
    "network": (
        "needs packets between pods, nodes or clients",
        "addresses are allocated and endpoints are kept, but nothing listens on them",
    ),
    "host": (
        "needs a host: a kubelet's or another component's own ports, logs, disks, devices or SSH",
        "nodes are simulated, and all components are one process",
    ),
    "cloud": ("needs a cloud provider, or an upgrade of machines", "there are no machines"),
    "signing": ("needs a signer of certificates", "requests are stored, and no component signs them"),
    "aggregation": ("needs another API server behind this one", "APIServices are stored, and served by Podium alone"),
    "mirroring": (
        "needs a copy of one API in another that no scheduling, eviction or workload controller reads",
        "objects are stored in both forms if clients write both",
    ),
    "measured load": (
        "needs measured load, by which replicas are scaled",
        "neither a dump nor a simulation has any; usage is what annotations say",
    ),
    "load": (
        "needs requests that compete for the API server",
        "requests are limited alike and answered in turn; responses name their FlowSchema and priority level",
    ),
    "etcd": ("needs etcd, or several API servers", "the store is in the process, or in one SQLite file"),
    "off": ("is about an alpha feature that is off by default", "gates of this kind have no effect"),
    "kubectl": (
        "is about what kubectl does or prints by itself, whichever server it has",
        "kubectl is not part of Podium; the steps hold if the program has the version of the suite",
    ),
    "no token": (
        "needs kube-apiserver without the admission plugin ServiceAccount",
        "`podium up` has the plugins that are on by default: pods have the volume of a token",
    ),
}
"""By name of a reason: what a group needs, and why `podium up` does not have it."""

E2E = """
apimachinery/aggregator.go | Aggregator | aggregation
apimachinery/apiserver_identity.go | kube-apiserver identity | etcd
apimachinery/coordinatedleaderelection.go | CoordinatedLeaderElection | off
apimachinery/crd_conversion_webhook.go | conversion webhooks in containers; those at a URL are called | process
apimachinery/crd_selectable_fields.go | conversion webhooks in containers; those at a URL are called | process
apimachinery/etcd_failure.go | Etcd failure | etcd
apimachinery/flowcontrol.go | API priority and fairness: requests drowned out | load
apimachinery/openapiv3.go | OpenAPIV3 of an aggregated API server | aggregation
apimachinery/protocol.go | CBOR | off
apimachinery/sharding.go | ShardedListAndWatch | off
apimachinery/storage_version.go | StorageVersion resources | off
apimachinery/webhook.go | AdmissionWebhook: webhooks in containers; those at a URL are called | process
apps/daemon_restart.go | DaemonRestart | host
apps/rc.go, apps/replica_set.go | ReplicaSet and ReplicationController: traffic to their pods | network
apps/statefulset.go | Deploy clustered applications | process
auth/certificates.go | Certificates API: what is signed | signing
auth/constrained_imperonsation.go, auth/container_ulimits_psa.go | what a container reads or sets | process
auth/node_authn.go, auth/node_authz.go, auth/per_node_update.go | NodeAuthenticator, NodeAuthorizer | host
auth/projected_clustertrustbundle.go, auth/projected_podcertificate.go | Projected bundles and certificates | process
auth/service_accounts.go | ServiceAccounts: tokens mounted in containers | process
autoscaling | HorizontalPodAutoscaler, cluster size and DNS autoscaling | measured load
cloud, lifecycle, upgrades | cloud provider, bootstrap tokens, upgrades | cloud
common/network, network/networking.go, network/networking_perf.go | Networking | network
common/node/configmap.go, common/node/secrets.go | ConfigMap and Secret: as environment of a process | process
common/node/container.go, common/node/containers.go, common/node/expansion.go | Containers, Variable Expansion | process
common/node/container_probe.go | Probing container | process
common/node/container_restart_policy.go | Container Restart Rules, RestartAllContainers | process
common/node/downwardapi.go, common/node/file_key.go | Downward API, FileKeyRef: what containers read | process
common/node/ephemeral_containers.go | Ephemeral Containers: what they run | process
common/node/image_credential_provider.go, common/node/image_volume.go, common/node/runtime.go | images | process
common/node/init_container.go | InitContainer: those that fail | process
common/node/kubelet.go, common/node/kubelet_etc_hosts.go | Kubelet: output and files of containers | process
common/node/lifecycle_hook.go | Container Lifecycle Hook | process
common/node/pod_hostnameoverride.go | the host of a container | process
common/node/privileged.go, common/node/sysctl.go | the host of a container | process
common/node/pod_level_resources.go, common/node/security_context.go | cgroups and users of a container | process
common/node/pod_level_resources_resize.go, common/node/pod_resize.go, node/pod_resize.go | Resize: cgroups | process
common/storage | volumes mounted in containers | process
dra | DRA: drivers, and devices in containers; claims, templates and taints are in scope | process
instrumentation/logging, instrumentation/metrics.go, instrumentation/monitoring | logs and metrics of components | host
kubectl/debug.go, kubectl/exec.go, kubectl/logs.go | kubectl debug, exec, logs | process
kubectl/kubectl.go | Guestbook application, Update Demo, Kubectl copy, Proxy server | process
kubectl/portforward.go | Kubectl Port forwarding | network
network/conntrack.go | kube-proxy and host ports | network
network/hostport.go, network/kube_proxy.go, network/no_snat.go | kube-proxy and host ports | network
network/dns.go, network/dns_configmap.go, network/dns_scale_records.go | DNS | network
network/dual_stack.go | dual-stack: packets, and addresses of IPv6 | network
network/endpointslicemirroring.go | EndpointSliceMirroring | mirroring
network/loadbalancer.go | LoadBalancers | cloud
network/netpol, network/network_policy.go | NetworkPolicy | network
network/pod_lifecycle.go, network/proxy.go, network/service_latency.go | traffic to pods and by the API server | network
network/service.go | Services: traffic to them | network
network/topology_hints.go, network/traffic_distribution.go | traffic by topology | network
node/apparmor.go, node/security_context.go, node/mount_propagation.go | AppArmor, users, mounts | process
node/container_termination_metrics.go | kubelets' ports | host
node/pod_gc.go | a controller manager that keeps only 100 terminated pods | cloud
node/kubelet.go, node/kubelet_authz.go, node/kubelet_perf.go | kubelets' ports | host
node/crictl.go, node/gpu.go, node/node_problem_detector.go, node/ssh.go | what runs on a host | host
node/examples.go, node/pre_stop.go | examples, PreStop | process
node/pod_hostnamefqdn.go, node/container_readiness_during_termination.go | what containers run | process
storage/csi_volumes.go, storage/csimock, storage/drivers, storage/external | CSI drivers | process
storage/detach_mounted.go, storage/flexvolume.go, storage/subpath.go, storage/testsuites | mounted volumes | process
storage/empty_dir_wrapper.go, storage/host_path_type.go, storage/in_tree_volumes.go | files in volumes | process
storage/generic_persistent_volume-disruptive.go | a kubelet that stops | host
storage/nfs_persistent_volume-disruptive.go | a kubelet that stops | host
storage/non_graceful_node_shutdown.go | a node that stops with mounted volumes | host
storage/local_volume_resize.go, storage/volume_metrics.go | sizes and metrics of volumes | host
storage/persistent_volumes.go, storage/persistent_volumes-local.go | PersistentVolumes: files in them | process
storage/volume_provisioning.go | Dynamic Provisioning by a real provisioner | cloud
windows | Windows | process
"""
"""Lines of a path below test/e2e, what of it is out of scope, and the reason."""

TEST_CMD = """
authentication.sh | steps that log in with a signed certificate | signing
convert.sh | `kubectl convert` | kubectl
core.sh | steps with `exec`, `attach` and `logs` | process
debug.sh | steps that read what a debug container says | process
exec.sh | `kubectl exec` | process
help.sh, plugins.sh | help texts, translations, plugins | kubectl
kubeconfig.sh, kuberc.sh | files of settings, `kubectl config` | kubectl
node-management.sh | steps that read a node's logs | host
proxy.sh | paths to pods and Services | network
request-timeout.sh | the message about a watch that kubectl ends | kubectl
save-config.sh | `kubectl replace` of a pod by the manifest that it was created from | no token
scale.sh | `kubectl scale -o yaml`, which shows the new number of replicas since kubectl 1.36 | kubectl
"""
"""The same below test/cmd."""


PLAYED = """
apimachinery/aggregated_discovery.go, apimachinery/discovery.go | server/discovery/test_documents.py
apimachinery/apply.go | apirequests/test_applying.py, store/test_managed_fields.py
apimachinery/chunking.go | store/test_listing.py, server/tables/test_table.py
apimachinery/table_conversion.go, apimachinery/watchlist.go | store/test_listing.py, server/tables/test_table.py
apimachinery/crd_conversion_webhook.go, apimachinery/crd_selectable_fields.go | controlplane/test_conversion_webhooks.py
apimachinery/crd_publish_openapi.go | server/openapi/test_documents.py, store/test_definitions.py
apimachinery/crd_validation_rules.go | server/openapi/test_documents.py, store/test_definitions.py
apimachinery/crd_validation_ratcheting.go | store/test_definitions.py, apirequests/test_custom_objects.py
apimachinery/crd_watch.go, apimachinery/watch.go | store/test_watch.py
apimachinery/custom_resource_definition.go | store/test_definitions.py
apimachinery/field_validation.go | store/test_definitions.py, apirequests/test_custom_objects.py
apimachinery/flowcontrol.go | server/test_flow_control.py, controlplane/test_required_objects.py
apimachinery/garbage_collector.go | store/test_garbage.py, store/test_deletion.py
apimachinery/health_handlers.go | server/test_kubernetes_documents.py
apimachinery/mutatingadmissionpolicy.go | apirequests/test_admission_policies.py
apimachinery/validatingadmissionpolicy.go | apirequests/test_admission_policies.py
apimachinery/namespace.go | store/test_namespaces.py
apimachinery/openapiv3.go | server/openapi/test_documents.py
apimachinery/request_timeout.go, apimachinery/server_version.go | server/http/test_replies.py
apimachinery/resource_quota.go, scheduling/limit_range.go | store/test_quota.py, store/test_limit_ranges.py
apimachinery/webhook.go | controlplane/test_webhooks.py
apps/controller_revision.go | controllers/test_daemon_sets.py, controllers/test_adoption.py
apps/cronjob.go | controllers/test_cron_jobs.py, controlplane/test_action_events.py
apps/daemon_set.go | controllers/test_daemon_sets.py, controllers/test_daemon_pods.py
apps/deployment.go | controllers/test_deployments.py, controllers/test_rollouts.py
apps/disruption.go | store/test_eviction.py, controllers/test_disruption_controller.py
apps/job.go | controllers/test_jobs.py, controllers/test_pod_failures.py, controllers/test_completion_indexes.py
apps/rc.go, apps/replica_set.go | controllers/test_replica_sets.py, controllers/test_adoption.py
apps/ttl_after_finished.go | controllers/test_jobs.py
apps/statefulset.go | controllers/test_stateful_sets.py
dra/dra.go: without drivers | controllers/test_resource_claims.py, controllers/test_taint_eviction.py
dra/dra.go: slices | store/test_listing.py
auth/certificates.go, auth/selfsubjectreviews.go, auth/subjectreviews.go | server/test_reviews.py
auth/service_accounts.go | apirequests/test_object_defaults.py, controlplane/test_required_objects.py
common/node/configmap.go, common/node/secrets.go, common/node/podtemplates.go | store/test_immutable.py
common/node/ephemeral_containers.go, common/node/init_container.go | controlplane/test_pod_status.py
common/node/lease.go, common/node/node_lease.go, node/node_lifecycle.go | controlplane/test_node_leases.py
common/node/file_key.go | api/test_validation_pods.py
common/node/pods.go | controlplane/test_pod_status.py
common/node/pod_admission.go | decide/test_kubelet_admission.py
common/node/runtimeclass.go, node/runtimeclass.go | store/test_runtime_classes.py
framework/conformance | store/test_patching.py, apirequests/test_applying.py
instrumentation/core_events.go, instrumentation/events.go, node/events.go | controlplane/test_events.py
kubectl/delete.go | server/kubectl/test_write.py
kubectl/kubectl.go, kubectl/apply.go, kubectl/rollout.go | server/kubectl/test_write.py, server/kubectl/test_get.py
network/apiserver.go | store/test_initial_objects.py
network/endpoints.go, network/endpointslice.go | controllers/test_endpoints.py
network/ingress.go | api/test_validation_of_objects.py
network/service_cidrs.go | controlplane/test_service_ranges.py, api/test_validation_of_objects.py
network/ingressclass.go, network/service.go | apirequests/test_service_allocations.py
network/netpol/network_policy_api.go | api/test_validation_of_objects.py
node/pod_admission.go, node/pods.go | controlplane/test_pod_status.py, apirequests/test_object_defaults.py
node/taints.go | controllers/test_taint_eviction.py
node/pod_resize.go, common/node/pod_resize.go | store/test_resizing.py, controlplane/test_resizes.py
common/node/pod_level_resources_resize.go | controlplane/test_resizes.py
scheduling/gang_scheduling.go | controllers/test_gangs.py, store/test_group_admission.py
scheduling/predicates.go | controllers/test_scheduler.py, controlplane/test_pod_status.py
scheduling/preemption.go | controllers/test_preemptions.py, store/test_priority_classes.py
scheduling/priorities.go, scheduling/ubernetes_lite.go | controllers/test_scheduler.py
scheduling/workload.go | apirequests/test_pod_groups.py, store/test_group_admission.py
scheduling/workload_aware_preemption.go | controllers/test_gang_priorities.py
storage/csi_inline.go | api/test_validation_of_objects.py
storage/csi_node.go, storage/csistoragecapacity.go, storage/storageclass.go | store/test_storage_classes.py
storage/volume_attachment.go | store/test_immutable.py
storage/volumeattributesclass.go | store/test_immutable.py, controlplane/test_required_objects.py
storage/persistent_volumes.go | controllers/test_persistent_volumes.py, controllers/test_volume_phases.py
storage/pvc_storageclass.go | controllers/test_persistent_volumes.py, controllers/test_volume_phases.py
storage/pv_protection.go, storage/pvc_protection.go | controlplane/test_volume_protection.py
"""
"""Lines of paths below test/e2e of which the steps were played against `podium up`, and the tests of their rules."""

PLAYED_CMD = """
apply.sh, diff.sh | apirequests/test_applying.py, server/kubectl/test_write.py, controlplane/test_control_plane.py
apps.sh | server/kubectl/test_workloads.py, server/kubectl/test_write.py
auth_whoami.sh, authentication.sh | server/test_reviews.py, server/http/test_security.py
authorization.sh, certificate.sh | server/test_reviews.py, server/http/test_security.py
batch.sh, run.sh | server/kubectl/test_write.py, server/kubectl/test_get.py
core.sh | server/kubectl/test_write.py, server/kubectl/test_get.py, apirequests/test_object_defaults.py
crd.sh, discovery.sh | server/kubectl/test_custom_kinds.py, server/discovery/test_documents.py
create.sh, delete.sh, template-output.sh | server/kubectl/test_write.py, server/kubectl/test_workloads.py
debug.sh, exec.sh | controlplane/test_pod_status.py, server/kubectl/test_write.py
events.sh | controllers/test_cron_jobs.py, controlplane/test_events.py
generic-resources.sh | server/kubectl/test_write.py, server/kubectl/test_workloads.py
get.sh, old-print.sh | server/kubectl/test_get.py, server/tables/test_table.py
kubeconfig.sh, kuberc.sh | server/http/test_security.py, server/kubectl/test_get.py
legacy-script.sh | server/kubectl/test_get.py, server/discovery/test_documents.py
node-management.sh | server/kubectl/test_nodes.py
proxy.sh, version.sh | server/http/test_replies.py, server/test_kubernetes_documents.py
rbac.sh | server/kubectl/test_write.py, controlplane/test_required_objects.py
request-timeout.sh, wait.sh | server/http/test_watches.py, server/kubectl/test_get.py
results.sh | server/kubectl/test_get.py
save-config.sh | server/kubectl/test_write.py, apirequests/test_served_versions.py
scale.sh | store/test_scale.py
storage.sh | server/kubectl/test_get.py, store/test_storage_classes.py
"""
"""The same below test/cmd."""

PLAYED_INTEGRATION = """
apiserver: lists, watches, tables, patches | store/test_listing.py, server/http/test_replies.py, store/test_patching.py
apiserver: field validation | server/http/test_replies.py, server/http/test_hostile.py
apiserver: rules in schemas | apirequests/test_custom_objects.py, api/cel/test_expressions.py
apiserver/admissionwebhook | controlplane/test_webhooks.py
apiserver/apidefinitions | apirequests/test_router.py, apirequests/test_applying.py, store/test_deletion.py
apiserver/apply | apirequests/test_applying.py, store/test_managed_fields.py, store/test_scale.py
apiserver/cel | apirequests/test_admission_policies.py, api/test_validation_of_admission.py
apiserver/flowcontrol | server/test_flow_control.py
auth: Pod Security Standards | apirequests/test_pod_security.py
auth: roles and bindings | server/test_reviews.py, api/test_validation_of_objects.py
client, pods | apirequests/test_router.py, store/test_immutable.py, store/test_resizing.py
cronjob, namespace | store/test_immutable.py, controllers/test_cron_jobs.py, store/test_namespaces.py
daemonset | controllers/test_daemon_sets.py, controllers/test_daemon_pods.py
deployment, replicaset, replicationcontroller | controllers/test_deployments.py, controllers/test_replica_sets.py
defaulttolerationseconds | store/test_default_tolerations.py
disruption, evictions | store/test_eviction.py, controllers/test_disruption_controller.py
dra: claims, templates, extended resources, shared devices | controllers/test_resource_claims.py
dra: device taints | controllers/test_taint_eviction.py
dryrun | apirequests/test_router.py
endpoints, endpointslice, service | controllers/test_endpoints.py, apirequests/test_service_allocations.py
events | controlplane/test_events.py
garbagecollector | store/test_garbage.py, store/test_deletion.py
job | controllers/test_jobs.py, controllers/test_pod_failures.py, controllers/test_completion_indexes.py
node, podgc | controllers/test_node_lifecycle.py, controllers/test_pod_garbage.py
objectmeta, scale, secrets | apirequests/test_object_defaults.py, store/test_scale.py, store/test_immutable.py
quota | store/test_quota.py
scheduler/preemption, scheduler/taint | controllers/test_preemptions.py, controllers/test_node_lifecycle.py
scheduler: gates, queueing, bindings | controllers/test_scheduler.py, controllers/test_queue.py, store/test_binding.py
scheduler/podgroup | controllers/test_gangs.py, controllers/test_gang_priorities.py
serviceaccount | controlplane/test_required_objects.py, apirequests/test_tokens.py, server/test_reviews.py
statefulset | controllers/test_stateful_sets.py
volumescheduling: bindings of volumes | plugins/test_volume_binding.py
"""
"""The same below test/integration."""

PLAYED_SUITES = (("test/e2e", PLAYED), ("test/cmd", PLAYED_CMD), ("test/integration", PLAYED_INTEGRATION))

DIFFERENCES = """
apiserver | a default stays in stored objects when the schema drops it | upstream adds defaults when it reads objects
apiserver/admissionwebhook | mutating webhooks see pods without priority and default tolerations | both follow them
apiserver/admissionwebhook | of subresources, only status and connections are reviewed | the parts have no webhooks
apiserver/apply | of list items with the same key, the last one is compared | other managers may keep fields of the rest
apiserver/cel | all expressions of a policy together may cost what one may upstream | they are evaluated in turn
client | Events of core/v1 may lack the reporter and the action of an eventTime | they are kept as they are
dra | of devices in the status of a claim, only that they are allocated is checked | drivers write them
events | Events of components are those of core/v1, without an action | they are in both APIs
garbagecollector | no Event says that an owner is in another namespace | the dependent is deleted all the same
pods | addresses and the states of containers in a status are not validated | a writer of them stands in for a kubelet
scheduler/podgroup | a gang with a topology constraint may preempt | [gangs](../gangs.md) says how
scheduler/podgroup | a pod with a higher priority than its group is not preempted | [gangs](../gangs.md) says why
service | no IPAddress is created for the address of a Service | addresses are allocated all the same
serviceaccount | Secrets of service accounts get no token | `kubectl create token` issues tokens
serviceaccount | which Secrets pods may mount is not limited | upstream discourages the annotation for that
serviceaccount | no documents for the discovery of the issuer of tokens | TokenReviews verify tokens
ttlcontroller | nodes have no annotation about the age of cached Secrets | nodes are simulated
"""
"""Lines of a path below test/integration, what Podium does otherwise, and why or with what effect."""


def played(text: str) -> list[tuple[str, str]]:
    """Return the groups that were played, each with the paths of its tests. Raises ValueError for a missing test."""
    tests = Path(__file__).parent.parent / "tests"
    found = []
    for line in text.strip().splitlines():
        names, tested = line.split("|")
        groups, _, part = names.partition(":")
        paths = [path.strip() for path in tested.split(",")]
        missing = [path for path in paths if not (tests / path).exists()]
        if missing:
            raise ValueError(f"there is no {missing[0]}")
        shown = ", ".join(f"`{group.strip()}`" for group in groups.split(","))
        found.append((shown + (f": {part.strip()}" if part else ""), ", ".join(f"`tests/{path}`" for path in paths)))
    return found


def rows(text: str) -> list[tuple[str, str, str]]:
    """Return the lines of a table by cells."""
    found = []
    for line in text.strip().splitlines():
        paths, what, reason = (cell.strip() for cell in line.split("|"))
        found.append((", ".join(f"`{path.strip()}`" for path in paths.split(",")), what, reason))
    return found
