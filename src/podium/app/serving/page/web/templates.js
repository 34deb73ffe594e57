// What somebody begins with who makes an object.

const BY_KIND = {
  Pod: `apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
spec:
  # priorityClassName: high
  containers:
  - name: main
    image: nginx
    resources:
      requests: {cpu: 500m, memory: 256Mi}
`,
  Deployment: `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: nginx
        resources:
          requests: {cpu: 500m, memory: 256Mi}
`,
  PriorityClass: `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: high
value: 1000
preemptionPolicy: PreemptLowerPriority
`,
  PodDisruptionBudget: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: web
  namespace: default
spec:
  minAvailable: 2
  selector:
    matchLabels: {app: web}
`,
  Node: `apiVersion: v1
kind: Node
metadata:
  name: node-new
  labels:
    kubernetes.io/hostname: node-new
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "110"}
  capacity: {cpu: "4", memory: 16Gi, pods: "110"}
  conditions:
  - {type: Ready, status: "True"}
`,
  Job: `apiVersion: batch/v1
kind: Job
metadata:
  name: work
  namespace: default
spec:
  parallelism: 2
  completions: 4
  template:
    metadata:
      annotations: {podium.dev/duration: 30s}
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        resources:
          requests: {cpu: 250m}
`,
};

// The text for an object of a kind.
export function templateOf({ kind, group, version, namespaced }) {
  if (BY_KIND[kind]) {
    return BY_KIND[kind];
  }
  const apiVersion = group ? `${group}/${version}` : version;
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: \n${namespaced ? "  namespace: default\n" : ""}`;
}
