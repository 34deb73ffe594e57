// What is kept of a pod and of a node: what is drawn, and no more, since there may be very many.
import { requestsOf, whole } from "./quantity.js";

const ZONE = "topology.kubernetes.io/zone";
const SHAPE = "node.kubernetes.io/instance-type";
const HASH = "pod-template-hash";

// A pod, from an event of a watch.
export function podOf({ metadata, spec, status = {} }) {
  const conditions = status.conditions || [];
  const scheduled = conditions.find((condition) => condition.type === "PodScheduled");
  const target = conditions.find((condition) => condition.type === "DisruptionTarget" && condition.status === "True");
  return [{
    key: metadata.uid || `${metadata.namespace}/${metadata.name}`,
    version: metadata.resourceVersion,
    name: `${metadata.namespace}/${metadata.name}`,
    workload: workloadOf(metadata),
    priority: spec.priority || 0,
    node: spec.nodeName || "",
    requests: requestsOf(spec),
    created: Date.parse(metadata.creationTimestamp) || 0,
    phase: status.phase || "Pending",
    isDeleted: Boolean(metadata.deletionTimestamp),
    nominated: status.nominatedNodeName || "",
    waits: scheduled && scheduled.status === "False" ? scheduled.message || scheduled.reason || "" : "",
    disruption: target ? target.reason || "" : "",
    why: target ? target.message || "" : "",
  }];
}

// Who makes the pod, in words. A ReplicaSet that a Deployment made bears the hash of its pods' template.
function workloadOf({ name, namespace, labels = {}, ownerReferences = [] }) {
  const owner = ownerReferences.find((each) => each.controller);
  if (!owner) {
    return `Pod ${namespace}/${name}`;
  }
  const end = `-${labels[HASH]}`;
  const isDeployed = owner.kind === "ReplicaSet" && labels[HASH] && owner.name.endsWith(end);
  return isDeployed ? `Deployment ${namespace}/${owner.name.slice(0, -end.length)}` : `${owner.kind} ${namespace}/${owner.name}`;
}

// A node, from an event of a watch.
export function nodeOf({ metadata, spec = {}, status = {} }) {
  const labels = metadata.labels || {}, taints = spec.taints || [];
  const ready = (status.conditions || []).find((condition) => condition.type === "Ready");
  return [{
    key: metadata.uid || metadata.name,
    version: metadata.resourceVersion,
    name: metadata.name,
    zone: labels[ZONE] || "",
    shape: labels[SHAPE] || "",
    offers: whole(status.allocatable || {}),
    isDown: Boolean(ready) && ready.status !== "True",
    isCordoned: Boolean(spec.unschedulable),
    marks: [spec.unschedulable ? "cordoned" : "", ready && ready.status !== "True" ? "not ready" : "",
      ...taints.filter((taint) => !taint.key.startsWith("node.kubernetes.io/")).map((taint) => `${taint.key}:${taint.effect}`)]
      .filter((mark) => mark).join(", "),
  }];
}
