"""The numbers that the fields of batch/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
CronJob
  metadata=1:meta.ObjectMeta spec=2:CronJobSpec status=3:CronJobStatus
CronJobSpec
  schedule=1! timeZone=8! startingDeadlineSeconds=2:long! concurrencyPolicy=3 suspend=4:bool!
  jobTemplate=5:JobTemplateSpec! successfulJobsHistoryLimit=6:int! failedJobsHistoryLimit=7:int!
CronJobStatus
  active=1:[core.ObjectReference] lastScheduleTime=4:time! lastSuccessfulTime=5:time!
Job
  metadata=1:meta.ObjectMeta spec=2:JobSpec status=3:JobStatus
JobCondition
  type=1! status=2! lastProbeTime=3:time lastTransitionTime=4:time reason=5 message=6
JobSpec
  parallelism=1:int! completions=2:int! activeDeadlineSeconds=3:long! podFailurePolicy=11:PodFailurePolicy!
  successPolicy=16:SuccessPolicy! backoffLimit=7:int! backoffLimitPerIndex=12:int! maxFailedIndexes=13:int!
  selector=4:meta.LabelSelector! manualSelector=5:bool! template=6:core.PodTemplateSpec!
  ttlSecondsAfterFinished=8:int! completionMode=9! suspend=10:bool! podReplacementPolicy=14! managedBy=15!
JobStatus
  conditions=1:[JobCondition] startTime=2:time! completionTime=3:time! active=4:int succeeded=5:int failed=6:int
  terminating=11:int! completedIndexes=7 failedIndexes=10! uncountedTerminatedPods=8:UncountedTerminatedPods!
  ready=9:int!
JobTemplateSpec
  metadata=1:meta.ObjectMeta spec=2:JobSpec
PodFailurePolicy
  rules=1:[PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement
  containerName=1! operator=2! values=3:[int]
PodFailurePolicyOnPodConditionsPattern
  type=1! status=2!
PodFailurePolicyRule
  action=1! onExitCodes=2:PodFailurePolicyOnExitCodesRequirement!
  onPodConditions=3:[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy
  rules=1:[SuccessPolicyRule]
SuccessPolicyRule
  succeededIndexes=1! succeededCount=2:int!
UncountedTerminatedPods
  succeeded=1:[str] failed=2:[str]
"""
