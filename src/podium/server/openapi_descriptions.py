"""The descriptions in `kubectl explain`: short texts for the most important kinds and fields.

Each has a type, or a field of a type, and its description; `*` is any type.
"""

_TEXT = """
*.apiVersion = The group and version that the object is written in.
*.kind = The kind of the object.
*.metadata = The object's name, labels, annotations, and what the API server keeps about it.
*.spec = What is wanted.
*.status = What is observed; written by components, not by people.
*.conditions = What holds of the object, each with a type, a status, and the reason.
*.observedGeneration = The generation of the spec that the status is about.
*.selector = Which objects are meant, by their labels.
*.replicas = How many pods are wanted, or there are.
*.template = The pod that is to be made.
*.minReadySeconds = How long a pod must be ready before it counts as available.
*.revisionHistoryLimit = How many old revisions are kept.
*.name = The name.
*.namespace = The namespace.
*.type = What sort it is.
*.reason = Why, in one word.
*.message = Why, for people.
*.lastTransitionTime = When the status of the condition changed last.
Binding = Binds a pod to a node.
ConfigMap = Configuration for pods, as keys and values.
ConfigMap.data = The entries that are text.
ConfigMap.binaryData = The entries that are not text, in base64.
Container = One container of a pod.
Container.args = The arguments of the command.
Container.command = What is run, in the place of the image's own entry point.
Container.env = The environment variables.
Container.image = The image to run.
Container.livenessProbe = Tells whether the container must be started again.
Container.ports = The ports that the container listens on.
Container.readinessProbe = Tells whether the container can serve.
Container.resources = What the container requests, and what it may use at most.
Container.volumeMounts = Where volumes are mounted.
ControllerRevision = A state that a StatefulSet or DaemonSet was in.
CronJob = Creates Jobs at given times.
CronJobSpec.schedule = When, as cron writes it.
CronJobSpec.suspend = Whether no jobs are created for now.
CSIDriver = A driver of volumes.
CSINode = The drivers of volumes on a node.
CSIStorageCapacity = How much room a storage class has at some place.
CustomResourceDefinition = Adds a kind to the API.
DaemonSet = Keeps a pod on every node that it selects.
Deployment = Keeps a number of equal pods, and replaces them step by step when their template changes.
DeploymentSpec.paused = Whether a change of the template has no effect for now.
DeploymentSpec.progressDeadlineSeconds = How long a rollout may stand still before it counts as failed.
DeploymentSpec.strategy = How pods are replaced.
DeviceClass = A class of devices that claims ask for.
Event = Something that happened to an object.
Job = Runs pods until enough of them have succeeded.
JobSpec.backoffLimit = How many pods may fail before the job does.
JobSpec.completions = How many pods must succeed.
JobSpec.parallelism = How many pods run at a time.
LabelSelector = Selects objects by their labels: all that is said must hold.
LabelSelector.matchExpressions = Conditions on single labels.
LabelSelector.matchLabels = Labels that must be as given.
Lease = Says who holds something, and until when.
LimitRange = What pods of a namespace get where they say nothing, and what they may ask for.
Namespace = A part of the cluster with names of its own.
Node = A machine that runs pods.
NodeSpec.taints = What keeps pods away that do not tolerate it.
NodeSpec.unschedulable = Whether no further pods are scheduled to the node.
NodeStatus.allocatable = What the node offers to pods.
NodeStatus.capacity = All that the node has.
ObjectMeta = What all objects carry.
ObjectMeta.annotations = Notes for programs and people; nothing is selected by them.
ObjectMeta.creationTimestamp = When the object was created.
ObjectMeta.deletionTimestamp = When the object is to be gone; set once it is being deleted.
ObjectMeta.finalizers = What has to be done before the object can go.
ObjectMeta.generateName = What the name begins with, if the server is to choose it.
ObjectMeta.labels = Keys and values that objects are selected by.
ObjectMeta.name = The name, which no other object of the kind has in the namespace.
ObjectMeta.ownerReferences = The objects that this one belongs to; with them it goes.
ObjectMeta.resourceVersion = The version of the object, which every change replaces.
ObjectMeta.uid = What tells the object from a later one of the same name.
PersistentVolume = Storage that pods can use through a claim.
PersistentVolumeClaim = Asks for storage.
Pod = Containers that run together on one node.
PodDisruptionBudget = Limits how many of some pods may be disrupted at a time.
PodDisruptionBudgetSpec.maxUnavailable = How many of the pods may be down: a number or a percentage.
PodDisruptionBudgetSpec.minAvailable = How many of the pods must stay up: a number or a percentage.
PodDisruptionBudgetStatus.disruptionsAllowed = How many more pods may be disrupted now.
PodDisruptionBudgetStatus.disruptionRate = How often the pods may be disrupted, and how often still.
PodSpec = What a pod is made of, and where it may run.
PodSpec.activeDeadlineSeconds = How long the pod may run.
PodSpec.affinity = Where the pod must or should run, by labels of nodes and of other pods.
PodSpec.containers = The containers of the pod; at least one.
PodSpec.initContainers = The containers that run before the others, one after the other.
PodSpec.nodeName = The node that the pod is bound to.
PodSpec.nodeSelector = Labels that the node must have.
PodSpec.preemptionPolicy = Whether the pod preempts others, and is preempted.
PodSpec.priority = How important the pod is; given by its class.
PodSpec.priorityClassName = The PriorityClass of the pod.
PodSpec.restartPolicy = Whether containers that end are started again: Always, OnFailure or Never.
PodSpec.schedulerName = The name of the scheduler that places the pod.
PodSpec.schedulingGates = What must be removed before the pod is scheduled.
PodSpec.terminationGracePeriodSeconds = How long the pod has to end when it is deleted.
PodSpec.tolerations = The taints of nodes that do not keep the pod away.
PodSpec.topologySpreadConstraints = How the pod and its like spread over nodes, zones, and so on.
PodSpec.volumes = What containers can mount.
PodStatus.nominatedNodeName = The node on which room is being made for the pod.
PodStatus.phase = Pending, Running, Succeeded, Failed or Unknown.
PodTemplateSpec = The pod that a workload makes.
PriorityClass = A name for a priority.
PriorityClass.globalDefault = Whether pods that name no class are of this one.
PriorityClass.preemptionPolicy = Whether pods of the class preempt others, and are preempted.
PriorityClass.value = The priority: the higher, the more important.
ReplicaSet = Keeps a number of equal pods.
ReplicationController = Keeps a number of equal pods; a ReplicaSet does it better.
ResourceClaim = Asks for devices.
ResourceClaimTemplate = The claim that is made for each pod that names it.
ResourceQuota = Limits what a namespace may use.
ResourceRequirements.limits = How much may be used at most.
ResourceRequirements.requests = How much is set aside.
ResourceSlice = Devices of a node, or of several.
RuntimeClass = A way to run pods.
Secret = Confidential configuration for pods.
Service = An address for some pods.
ServiceAccount = The identity of pods at the API server.
StatefulSet = Keeps pods with names and storage of their own.
StorageClass = A sort of storage, and who provisions it.
VolumeAttachment = A volume that is attached to a node.
"""


DESCRIPTIONS = {of: text for of, _, text in (line.partition(" = ") for line in _TEXT.strip().splitlines())}
"""All descriptions, of types and of fields of types."""


def described(of: str) -> str:
    """Return the description of a type or field (`PodSpec.nodeName`); "" if there is none."""
    return DESCRIPTIONS.get(of) or DESCRIPTIONS.get(f"*.{of.rpartition('.')[2]}" if "." in of else "", "")
