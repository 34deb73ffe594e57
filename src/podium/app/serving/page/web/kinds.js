// The kinds of objects that the server has, as it says itself.

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
// Those that people look for most come first.
const FIRST = [
  "Pod", "Node", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "PodDisruptionBudget",
  "PriorityClass", "DisruptionPolicy", "Namespace", "ResourceQuota", "PersistentVolumeClaim", "PersistentVolume",
  "StorageClass", "ConfigMap", "Event",
];

// All kinds whose objects can be watched: `{group, version, kind, plural, namespaced, verbs, label}`.
export async function readKinds(server) {
  const found = [];
  for (const path of ["/api", "/apis"]) {
    const list = await server.json("GET", path, { accept: AGGREGATED });
    for (const group of list.items || []) {
      for (const version of group.versions || []) {
        found.push(...kindsIn(group.metadata.name || "", version));
      }
    }
  }
  return arranged(found);
}

function kindsIn(group, { version, resources = [] }) {
  return resources
    .filter((resource) => resource.verbs.includes("list") && resource.verbs.includes("watch"))
    .map((resource) => ({
      group,
      version,
      kind: resource.responseKind.kind,
      plural: resource.resource,
      namespaced: resource.scope === "Namespaced",
      verbs: resource.verbs,
      subresources: (resource.subresources || []).map((part) => part.subresource),
    }));
}

// One entry for each kind, in the version that the server names first; where two groups have a kind, both with theirs.
function arranged(found) {
  const kinds = new Map();
  for (const kind of found) {
    const key = `${kind.group}/${kind.kind}`;
    if (!kinds.has(key)) {
      kinds.set(key, kind);
    }
  }
  const count = Map.groupBy(kinds.values(), (kind) => kind.kind);
  for (const kind of kinds.values()) {
    kind.label = count.get(kind.kind).length > 1 ? `${kind.kind} (${kind.group || "core"})` : kind.kind;
  }
  const rank = (kind) => (FIRST.includes(kind.kind) ? FIRST.indexOf(kind.kind) : FIRST.length);
  return [...kinds.values()].sort(
    (left, right) => rank(left) - rank(right) || left.label.localeCompare(right.label),
  );
}

// The kind of an object that says its apiVersion and kind; undefined for one that the server does not have.
export function kindOf(kinds, apiVersion, kind) {
  const [version, group] = apiVersion.split("/").reverse();
  return kinds.find((each) => each.kind === kind && each.group === (group || "")) && {
    ...kinds.find((each) => each.kind === kind && each.group === (group || "")),
    version,
  };
}
