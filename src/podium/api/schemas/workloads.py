"""What makes pods (apps/v1, batch/v1, and the ReplicationController of core/v1)."""

FIELDS = """
ControllerRevision
  apiVersion kind metadata:ObjectMeta data:any revision:long
CronJob
  apiVersion kind metadata:ObjectMeta spec:CronJobSpec status:CronJobStatus
CronJobSpec
  schedule timeZone startingDeadlineSeconds:long concurrencyPolicy suspend:bool jobTemplate:JobTemplateSpec
  successfulJobsHistoryLimit:int failedJobsHistoryLimit:int
CronJobStatus
  active:[ObjectReference] lastScheduleTime:time lastSuccessfulTime:time
DaemonSet
  apiVersion kind metadata:ObjectMeta spec:DaemonSetSpec status:DaemonSetStatus
DaemonSetCondition
  type status lastTransitionTime:time reason message
DaemonSetSpec
  selector:LabelSelector^ template:PodTemplateSpec updateStrategy:DaemonSetUpdateStrategy minReadySeconds:int
  revisionHistoryLimit:int
DaemonSetStatus
  currentNumberScheduled:int numberMisscheduled:int desiredNumberScheduled:int numberReady:int
  observedGeneration:long updatedNumberScheduled:int numberAvailable:int numberUnavailable:int collisionCount:int
  conditions:[DaemonSetCondition]#type
DaemonSetUpdateStrategy
  type rollingUpdate:RollingUpdateDaemonSet
Deployment
  apiVersion kind metadata:ObjectMeta spec:DeploymentSpec status:DeploymentStatus
DeploymentCondition
  type status lastUpdateTime:time lastTransitionTime:time reason message
DeploymentSpec
  replicas:int selector:LabelSelector^ template:PodTemplateSpec strategy:DeploymentStrategy minReadySeconds:int
  revisionHistoryLimit:int paused:bool progressDeadlineSeconds:int
DeploymentStatus
  observedGeneration:long replicas:int updatedReplicas:int readyReplicas:int availableReplicas:int
  unavailableReplicas:int terminatingReplicas:int conditions:[DeploymentCondition]#type collisionCount:int
DeploymentStrategy
  type rollingUpdate:RollingUpdateDeployment
Job
  apiVersion kind metadata:ObjectMeta spec:JobSpec status:JobStatus
JobCondition
  type status lastProbeTime:time lastTransitionTime:time reason message
JobSpec
  parallelism:int completions:int activeDeadlineSeconds:long podFailurePolicy:PodFailurePolicy
  successPolicy:SuccessPolicy backoffLimit:int backoffLimitPerIndex:int maxFailedIndexes:int selector:LabelSelector^
  manualSelector:bool template:PodTemplateSpec ttlSecondsAfterFinished:int completionMode^ suspend:bool
  podReplacementPolicy managedBy
JobStatus
  conditions:[JobCondition]#type startTime:time completionTime:time active:int succeeded:int failed:int
  terminating:int completedIndexes failedIndexes uncountedTerminatedPods:UncountedTerminatedPods ready:int
JobTemplateSpec
  metadata:ObjectMeta spec:JobSpec
ObjectReference
  kind namespace name uid apiVersion resourceVersion fieldPath
PodFailurePolicy
  rules:[PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement
  containerName operator values:[int]
PodFailurePolicyOnPodConditionsPattern
  type status
PodFailurePolicyRule
  action onExitCodes:PodFailurePolicyOnExitCodesRequirement onPodConditions:[PodFailurePolicyOnPodConditionsPattern]
PodTemplateSpec
  metadata:ObjectMeta spec:PodSpec
ReplicaSet
  apiVersion kind metadata:ObjectMeta spec:ReplicaSetSpec status:ReplicaSetStatus
ReplicaSetCondition
  type status lastTransitionTime:time reason message
ReplicaSetSpec
  replicas:int minReadySeconds:int selector:LabelSelector^ template:PodTemplateSpec
ReplicaSetStatus
  replicas:int fullyLabeledReplicas:int readyReplicas:int availableReplicas:int terminatingReplicas:int
  observedGeneration:long conditions:[ReplicaSetCondition]#type
ReplicationController
  apiVersion kind metadata:ObjectMeta spec:ReplicationControllerSpec status:ReplicationControllerStatus
ReplicationControllerCondition
  type status lastTransitionTime:time reason message
ReplicationControllerSpec
  replicas:int minReadySeconds:int selector:{str} template:PodTemplateSpec
ReplicationControllerStatus
  replicas:int fullyLabeledReplicas:int readyReplicas:int availableReplicas:int observedGeneration:long
  conditions:[ReplicationControllerCondition]#type
RollingUpdateDaemonSet
  maxUnavailable:share maxSurge:share
RollingUpdateDeployment
  maxUnavailable:share maxSurge:share
RollingUpdateStatefulSetStrategy
  partition:int maxUnavailable:share
StatefulSet
  apiVersion kind metadata:ObjectMeta spec:StatefulSetSpec status:StatefulSetStatus
StatefulSetCondition
  type status lastTransitionTime:time reason message
StatefulSetOrdinals
  start:int
StatefulSetPersistentVolumeClaimRetentionPolicy
  whenDeleted whenScaled
StatefulSetSpec
  replicas:int selector:LabelSelector^ template:PodTemplateSpec serviceName^ podManagementPolicy^
  volumeClaimTemplates:[PersistentVolumeClaim]^ updateStrategy:StatefulSetUpdateStrategy revisionHistoryLimit:int
  minReadySeconds:int persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy
  ordinals:StatefulSetOrdinals
StatefulSetStatus
  observedGeneration:long replicas:int readyReplicas:int currentReplicas:int updatedReplicas:int currentRevision
  updateRevision collisionCount:int conditions:[StatefulSetCondition]#type availableReplicas:int
StatefulSetUpdateStrategy
  type rollingUpdate:RollingUpdateStatefulSetStrategy
SuccessPolicy
  rules:[SuccessPolicyRule]
SuccessPolicyRule
  succeededIndexes succeededCount:int
UncountedTerminatedPods
  succeeded:[str] failed:[str]
"""
