"""The fields of the answers in JSON, as `podium.app.schemas.tables` reads them; what each means stands in docs/."""

COMMON = """
Caveat
  about message count:int names:[str]
Status
  status:Success|Unschedulable|UnschedulableAndUnresolvable|Error|Skip plugin? reasons?:[str]
"""

EXPLAIN = """
Explanation
  schemaVersion:int pod
  outcome:schedulable|preempts|unschedulable|not-eligible|gated|error|placed
  node preEnqueue?:Status error? preFilter?:Status nodes:{Status} scores?:{{int}} totals?:{int} best?:[str]
  claims?:{{Claim}} preemption?:Preemption postFilter?:{Status} priority:int nominatedNode? gates?:[str]
  remedies?:Remedies placed?:Placed disruptions?:DisruptionState outcomes?:[Outcome] furtherOutcomes?:int
  gang?:Gang restsOn:[Caveat]
Gang
  group minCount:int pods:int placed:int needed:int fitting:int isEnough:bool members:{str} domain? domains?:int
  problem? victims?:[str] preemption? plan?:GangPlan
GangPlan
  eligible:bool ways:[GangWay] decidedBy? reason? putOff?:PutOff search?:GangSearch
GangWay
  members:{str} victims:{[str]} pdbViolations:int domain? costs?:{any}
GangSearch
  steps:int maxSteps:int domainsLeftOut:int isComplete:bool
Outcome
  suffering:[Suffering] nodes:[Way] furtherNodes:int
Suffering
  workload pods:int
Way
  node victims:[str]
Claim
  devices:[str] nodeSelector?:any
Preemption
  eligible:bool isExchange?:bool reason? candidates:{Candidate} rejected?:{Status} selected:[str] putOff?:PutOff error?
  decidedBy? search?:Search reasons?:{str}
Candidate
  victims:[str] pdbViolations:int elsewhere?:{str} costs?:{any}
Search
  steps:int maxSteps:int nodesLeftOut:int isComplete:bool
PutOff
  victims:int cap left:int next namespace?
Remedies
  nodes:[NodeRemedy] furtherNodes:int pod?:PodRemedy protection?:ProtectionRemedy
NodeRemedy
  nodes:[str] obstacles:[str]
PodRemedy
  priority?:int preemptionPolicy? outcome node victims:[str]
ProtectionRemedy
  pods:[str] outcome node victims:[str]
Placed
  placedBy:scheduler|kubelet since:str~ rank:int~ ifEvicted:IfEvicted takers:[Taker] takersNotAsked:int
  budgets:[Allowed]
IfEvicted
  outcome node madeAgainBy:str~
Taker
  pod priority:int now:bool
Allowed
  budget allowed:int
WorkloadExplanation
  schemaVersion:int workload:Workload pods:[WorkloadPod] explained:pending|next explanation:Explanation
Workload
  kind key wanted:int~
WorkloadPod
  pod node:str~
NodeAnswer
  schemaVersion:int pod outcome node fits:bool taken preFilter?:Status filters:[Filter] nominatedThere:[str]
  obstacles:[str] scores:[Score] takenScores:[Score] preemption:PreemptionThere~
Filter
  plugin status:Success|Unschedulable|UnschedulableAndUnresolvable|Error|Skip reasons?:[str]
Score
  plugin raw:int normalized:int weight:int weighted:int
PreemptionThere
  helps:bool victims?:[str] pdbViolations?:int reasons?:[str]
"""

SIMULATE = """
Result
  schemaVersion:int events:[Event] pods:[Pod] summary:Summary nodes:[FinalNode] workloads:[WorkloadReadiness]
  budgets:[BudgetHealth] holds:[Hold] series:[Sums] disruptions?:DisruptionState recorded?:Comparison
  held?:{str} ledger?:[Disruption] restsOn:[Caveat]
Disruption
  id:int time:number pod uid node
  cause:preemption|eviction|drain|autoscaler|rescheduler|gang-release|pressure|taint|node-gone|deletion
  priority:int owner by rule plan alternatives:Alternatives~ beneficiary:Beneficiary~ loss:Loss
  replacement:Replacement~ inVain:str~
Alternatives
  candidates:int equals:[str]
Beneficiary
  pod uid owner priority:int room outcome:waiting|placed|elsewhere|gone|again node:str~ placedAfter:number~
Loss
  ran:number lost:number requests:{number} work:{number} grace:number~ endedAfter:number~
Replacement
  pod uid node:str~ placedAfter:number~ readyAfter:number~
Event
  time:number reason pod:str~ node:str~ by:str~ message count:int lastTime:number
Pod
  pod uid workload priority:int phase
  state:ready|running|starting|pending|lost|terminating|succeeded|failed|terminated
  node:str~ nominatedNode:str~ createdAt:number~ scheduledAt:number~ startedAt:number~ endedAt:number~
  disruption:str~ evictedBy:str~
Summary
  end:number pods:{int} preempted:int disruptions:{int} evictedBy:{int} bindings:int attempts:int waiting:[Waiting]
  use:{Use} nodeHours:number short:[Shortfall] drains:[Drain]
Waiting
  priority?:int count:int mean:number p50:number p95:number max:number
Use
  average:number final:number
Shortfall
  workload wants:int has:int reason
Drain
  node state:running|blocked|drained|refused|timed-out|withdrawn message:str~ pods:[DrainedPod]
DrainedPod
  pod state reason:str~ tries:int
FinalNode
  node marks:[str] podsBefore:int pods:int addedAt:number~ goneAt:number~ requested:any
WorkloadReadiness
  workload wantedBefore:int wanted:int readyBefore:int lowestReady:int ready:int pending:int shortSeconds:number
  pendingSeconds:number series:[ReadyPoint]
ReadyPoint
  time:number ready:int wanted:int
BudgetHealth
  budget desiredHealthy:int healthy:int lowestHealthy:int belowSeconds:number
Hold
  pod by budgets:[str] message from:number seconds:number ended:bool tries:int
Sums
  time:number nodes:int ready:int pending:int requested:{number}
Comparison
  recorded:ComparedSums simulated:ComparedSums sameNode:int otherNode:[any]
ComparedSums
  bindings:int preempted:int evicted:int waiting:any
"""

PLAN = """
PlanAnswer
  schemaVersion:int question headline findings:[Finding] impact:[WorkloadImpact] nodes:[NodeImpact]
  nodeHours?:NodeHours restsOn:[Caveat] result?:Result
  causes?:[PendingCause] notMade?:[NotMade] changes?:[any] placed?:[any] fit?:Fit shapes?:[FitShape] ends?:[FitEnd]
  victims?:{int} survives?:bool taken?:[TakenPod] gangs?:[GangInPart] takers?:[PendingTaker] classes?:[ClassThreat]
  differences?:[Difference] outcomes?:PlanOutcomes leftToChance?:LeftToChance
PlanOutcomes
  stories:int endings:[PlanEnding] furtherEndings:int
PlanEnding
  suffering:[PlanSuffering] stories:int
PlanSuffering
  workload disrupted:int missing:int
LeftToChance
  decisions:int deciding:int named:[Draw] notFollowed:int
Draw
  time:number pod outcomes:[DrawnOutcome] furtherOutcomes:int
DrawnOutcome
  suffering:[DrawnSuffering] nodes:[DrawnNode] furtherNodes:int followed:bool
DrawnSuffering
  workload pods:int
DrawnNode
  node victims:[str]
PendingCause
  cause pods:int examples:[str] workloads:{int} change:str~ freed:int
NotMade
  workload pods:int why
Fit
  pod fits:int wanted:int~ why:str~ atLeast?:bool nodes?:int withPreemption?:int~ preempting?:int
FitShape
  shape like nodes:int fits:int withPreemption:int~ perNode:PerNode ends:[ShapeEnd]
PerNode
  least:int most:int
ShapeEnd
  why nodes:int
FitEnd
  why nodes?:[str] pods?:int
TakenPod
  pod priority:int node preemptor preemptorWorkload preemptorPriority:int
GangInPart
  group left:int minCount:int releasedAfterSeconds:number~ survivors:[str]
PendingTaker
  pods:[str] workload priority:int taking victims:[str]
ClassThreat
  priorityClass value:int canPreempt:bool like node:str~
Difference
  workload what:gains|loses|moves ready:Pair shortSeconds:Pair disrupted:Pair moved:int
Pair
  before:number after:number
Finding
  code message subjects:[str]
WorkloadImpact
  workload readyBefore:int lowestReady:int readyAfter:int readyWithoutPlan:int wanted:int missing:int pending:int
  stuck:int shortSeconds:number pendingSeconds:number disruptions:{int} held:[Held] isNew:bool why:str~
Held
  budget seconds:number pods:int ended:bool
NodeImpact
  node change podsBefore:int podsAfter:int
NodeHours
  with:number without:number
"""
