"""The numbers that the fields of apps/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
ControllerRevision
  metadata=1:meta.ObjectMeta data=2:json revision=3:long!
DaemonSet
  metadata=1:meta.ObjectMeta spec=2:DaemonSetSpec status=3:DaemonSetStatus
DaemonSetCondition
  type=1! status=2! lastTransitionTime=3:time reason=4 message=5
DaemonSetSpec
  selector=1:meta.LabelSelector! template=2:core.PodTemplateSpec! updateStrategy=3:DaemonSetUpdateStrategy
  minReadySeconds=4:int revisionHistoryLimit=6:int!
DaemonSetStatus
  currentNumberScheduled=1:int! numberMisscheduled=2:int! desiredNumberScheduled=3:int! numberReady=4:int!
  observedGeneration=5:long updatedNumberScheduled=6:int numberAvailable=7:int numberUnavailable=8:int
  collisionCount=9:int! conditions=10:[DaemonSetCondition]
DaemonSetUpdateStrategy
  type=1 rollingUpdate=2:RollingUpdateDaemonSet!
Deployment
  metadata=1:meta.ObjectMeta spec=2:DeploymentSpec status=3:DeploymentStatus
DeploymentCondition
  type=1! status=2! lastUpdateTime=6:time lastTransitionTime=7:time reason=4 message=5
DeploymentSpec
  replicas=1:int! selector=2:meta.LabelSelector! template=3:core.PodTemplateSpec! strategy=4:DeploymentStrategy
  minReadySeconds=5:int revisionHistoryLimit=6:int! paused=7:bool progressDeadlineSeconds=9:int!
DeploymentStatus
  observedGeneration=1:long replicas=2:int updatedReplicas=3:int readyReplicas=7:int availableReplicas=4:int
  unavailableReplicas=5:int terminatingReplicas=9:int! conditions=6:[DeploymentCondition] collisionCount=8:int!
DeploymentStrategy
  type=1 rollingUpdate=2:RollingUpdateDeployment!
ReplicaSet
  metadata=1:meta.ObjectMeta spec=2:ReplicaSetSpec status=3:ReplicaSetStatus
ReplicaSetCondition
  type=1! status=2! lastTransitionTime=3:time reason=4 message=5
ReplicaSetSpec
  replicas=1:int! minReadySeconds=4:int selector=2:meta.LabelSelector! template=3:core.PodTemplateSpec
ReplicaSetStatus
  replicas=1:int! fullyLabeledReplicas=2:int readyReplicas=4:int availableReplicas=5:int terminatingReplicas=7:int!
  observedGeneration=3:long conditions=6:[ReplicaSetCondition]
RollingUpdateDaemonSet
  maxUnavailable=1:share! maxSurge=2:share!
RollingUpdateDeployment
  maxUnavailable=1:share! maxSurge=2:share!
RollingUpdateStatefulSetStrategy
  partition=1:int! maxUnavailable=2:share!
StatefulSet
  metadata=1:meta.ObjectMeta spec=2:StatefulSetSpec status=3:StatefulSetStatus
StatefulSetCondition
  type=1! status=2! lastTransitionTime=3:time reason=4 message=5
StatefulSetOrdinals
  start=1:int!
StatefulSetPersistentVolumeClaimRetentionPolicy
  whenDeleted=1 whenScaled=2
StatefulSetSpec
  replicas=1:int! selector=2:meta.LabelSelector! template=3:core.PodTemplateSpec!
  volumeClaimTemplates=4:[core.PersistentVolumeClaim] serviceName=5! podManagementPolicy=6
  updateStrategy=7:StatefulSetUpdateStrategy revisionHistoryLimit=8:int! minReadySeconds=9:int
  persistentVolumeClaimRetentionPolicy=10:StatefulSetPersistentVolumeClaimRetentionPolicy!
  ordinals=11:StatefulSetOrdinals!
StatefulSetStatus
  observedGeneration=1:long replicas=2:int! readyReplicas=3:int currentReplicas=4:int updatedReplicas=5:int
  currentRevision=6 updateRevision=7 collisionCount=9:int! conditions=10:[StatefulSetCondition]
  availableReplicas=11:int!
StatefulSetUpdateStrategy
  type=1 rollingUpdate=2:RollingUpdateStatefulSetStrategy!
"""
