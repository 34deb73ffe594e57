"""The JSON Schemas that ship with Podium, by name, made from structs, tables of fields, and Kubernetes' kinds.

A table is text: a line for each type, with its name and its fields, `name:type`; indented lines continue it. A field
without a type is text; other types are `int`, `number`, `bool`, `any`, `[...]` for a list, `{...}` for an object with
any keys, the name of a type, and alternatives separated by `|`. `?` behind the name marks an optional field, `~` behind
the type one that may be null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from podium.api.kinds import KINDS
from podium.api.reading import DURATION_SCHEMA
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, fields_of, is_type
from podium.api.times import format_duration
from podium.controllers.ledger.disruption import Disruption, UsageEntry
from podium.sim.history import SimEvent
from podium.sim.results.disruption_state import DisruptionState
from podium.sim.results.result import FinalNode
from podium.sim.scenario.actions import STEP_NAMES
from podium.sim.scenario.scenario import WrittenScenario

COMMON = """\
Caveat: about message count:int names:[str]
Status: status:Success|Unschedulable|UnschedulableAndUnresolvable|Error|Skip plugin? reasons?:[str]
"""

EXPLAIN = """\
Explanation: schemaVersion:int pod outcome:schedulable|preempts|unschedulable|not-eligible|gated|error|placed node
  preEnqueue?:Status error? preFilter?:Status nodes:{Status} scores?:{{int}} totals?:{int} best?:[str] claims?:{{Claim}}
  preemption?:Preemption postFilter?:{Status} proposal?:Proposal priority:int priorityRule? nominatedNode? gates?:[str]
  isBoundEarly?:bool remedies?:Remedies placed?:Placed disruptions?:DisruptionState outcomes?:[Outcome]
  furtherOutcomes?:int gang?:Gang caveats:[Caveat]
Gang: group minCount:int pods:int placed:int needed:int fitting:int isEnough:bool members:{str} domain? domains?:int
  problem? victims?:[str] preemption? plan?:GangPlan
GangPlan: eligible:bool ways:[GangWay] decidedBy? reason? putOff?:PutOff heldBack?:HeldBack search?:GangSearch
GangWay: members:{str} victims:{[str]} pdbViolations:int domain? costs?:{any}
GangSearch: steps:int maxSteps:int domainsLeftOut:int isComplete:bool
Outcome: losses:[OutcomeLoss] chance:number nodes:[OutcomeNode] furtherNodes:int
OutcomeLoss: workload pods:int
OutcomeNode: node victims:[str] chance:number
Claim: devices:[str] nodeSelector?:any
Preemption: eligible:bool isExchange?:bool reason? candidates:{Candidate} rejected?:{Status} selected:[str]
  putOff?:PutOff error? decidedBy? search?:Search reasons?:{str} heldBack?:HeldBack
HeldBack: budgets:[str] node victims:[str] nextToken?
Proposal: plugin node victims:[str]
Candidate: victims:[str] pdbViolations:int elsewhere?:{str} costs?:{any}
Search: steps:int maxSteps:int nodesLeftOut:int isComplete:bool
PutOff: victims:int cap left:int next namespace?
Remedies: nodes:[NodeRemedy] furtherNodes:int pod?:PodRemedy protection?:ProtectionRemedy
NodeRemedy: nodes:[str] obstacles:[str]
PodRemedy: priority?:int preemptionPolicy? outcome node victims:[str]
ProtectionRemedy: pods:[str] outcome node victims:[str]
Placed: placedBy:scheduler|kubelet since:str~ rank:int~ ifEvicted:IfEvicted preemptors:[Preemptor]
  preemptorsNotAsked:int budgets:[Allowed]
IfEvicted: outcome node replacedBy:str~
Preemptor: pod priority:int now:bool
Allowed: budget allowed:int
WorkloadExplanation: schemaVersion:int workload:Workload pods:[WorkloadPod] explained:pending|next
  explanation:Explanation
Workload: kind key wanted:int~
WorkloadPod: pod node:str~
NodeAnswer: schemaVersion:int pod outcome node fits:bool taken preFilter?:Status filters:[Filter] nominatedThere:[str]
  obstacles:[str] scores:[Score] takenScores:[Score] preemption:PreemptionThere~
Filter: plugin status:Success|Unschedulable|UnschedulableAndUnresolvable|Error|Skip reasons?:[str]
Score: plugin raw:int normalized:int weight:int weighted:int
PreemptionThere: helps:bool victims?:[str] pdbViolations?:int reasons?:[str]
"""

SIMULATE = """\
Result: schemaVersion:int events:[SimEvent] pods:[Pod] summary:Summary nodes:[FinalNode] workloads:[WorkloadReadiness]
  budgets:[BudgetHealth] holds:[Hold] series:[Sums] usage:[UsageEntry] disruptions?:DisruptionState recorded?:Comparison
  held?:{str} ledger?:[Disruption] latencies:Latencies caveats:[Caveat]
Latencies: seconds:number drawn:bool
Disruption: inVain:str~
Pod: pod uid workload priority:int phase
  state:ready|running|starting|pending|lost|terminating|succeeded|failed|terminated node:str~ nominatedNode:str~
  createdAt:number~ scheduledAt:number~ startedAt:number~ endedAt:number~ disruption:str~ evictedBy:str~
Summary: end:number pods:{int} preempted:int disruptions:{int} evictedBy:{int} bindings:int attempts:int
  waiting:[Waiting] use:{Use} nodeHours:number short:[Shortfall] drains:[Drain]
Waiting: priority?:int count:int mean:number p50:number p95:number max:number
Use: average:number final:number
Shortfall: workload wants:int has:int reason
Drain: node state:running|blocked|drained|refused|timed-out|withdrawn message:str~ pods:[DrainedPod]
DrainedPod: pod state reason:str~ tries:int
WorkloadReadiness: workload wantedBefore:int wanted:int readyBefore:int lowestReady:int ready:int pending:int
  shortSeconds:number pendingSeconds:number series:[ReadyPoint]
ReadyPoint: time:number ready:int wanted:int
BudgetHealth: budget desiredHealthy:int healthy:int lowestHealthy:int belowSeconds:number
Hold: pod by budgets:[str] message from:number seconds:number ended:bool tries:int
Sums: time:number nodes:int ready:int pending:int requested:{number}
Comparison: recorded:ComparedSums simulated:ComparedSums sameNode:int otherNode:[any]
ComparedSums: bindings:int preempted:int evicted:int waiting:any
"""

RESCHEDULE = """\
Rescheduling: version:int time cluster planned:[PlannedMoves] leftAlone:[LeftAlone] untouched:Untouched
  objectives:[Objective] monthlyCost:MonthlyCost~ certificate:Certificate~ trials:int isCut:bool stopped errors:[str]
  caveats:[Caveat]
PlannedMoves: policy reason gain:number partOf:MovesTogether~ moves:[Move]
MovesTogether: pods:int gain:number
Move: pod uid controller from to:str~ isSure:bool hasEnded:bool
LeftAlone: policy pod why
Untouched: pods:int of:int reasons:[UntouchedPods] others:int
UntouchedPods: why pods:int
Objective: policy before:number after:number
MonthlyCost: before:number after:number unpriced:int
Certificate: now:number after:number moves:int price:number withinLimits:LowerBound ever:LowerBound covered:[str]
  uncovered:[str] relaxed:[Relaxed]
LowerBound: bound:number gap:number share:number
Relaxed: policy what:[str]
"""

PLAN = """\
PlanAnswer: schemaVersion:int question summary headline findings:[PlanFinding] impact:[WorkloadImpact]
  nodes:[NodeImpact] nodeHours?:NodeHours caveats:[Caveat] result?:Result causes?:[PendingCause]
  notCreated?:[NotCreated] changes?:[any] placed?:[any] fit?:Fit shapes?:[FitShape] limits?:[FitLimit] victims?:{int}
  survives?:bool preempted?:[PreemptedPod] gangs?:[IncompleteGang] preemptors?:[PotentialPreemptor]
  classes?:[PriorityClassThreat] differences?:[Difference] outcomes?:PlanOutcomes ties?:Ties pods?:[UpgradedPod]
  fields?:[UpgradedField] behaviors?:[UpgradeChange] gates?:[str] anyway?:Anyway drains?:[Drain] unblock?:[str]
  cascade?:[PlannedPreemption] moves?:Rescheduling schedule?:Schedule
Anyway: pending:int preempted:int evicted:int
Schedule: plans:int isCut:bool seconds:number steps:[ScheduledEviction]
ScheduledEviction: time:number pod from to:str~ boundAt:number~ readyAt:number~ waitedFor policy
UpgradedPod: pod effect:runs|waits|moves|message what
UpgradedField: what effect objects:[str]
UpgradeChange: name what
PlanOutcomes: samples:int outcomes:[PlanOutcome] furtherOutcomes:int
PlanOutcome: losses:[WorkloadLoss] samples:int
Ties: decisions:int deciding:int named:[Tie] notSampled:int
Tie: time:number pod outcomes:[TieOutcome] furtherOutcomes:int
TieOutcome: losses:[TieLoss] chance:number nodes:[TieNode] furtherNodes:int sampled:bool
TieLoss: workload pods:int
TieNode: node victims:[str] chance:number
PendingCause: cause pods:int examples:[str] workloads:{int} change:str~ placed:int
NotCreated: workload pods:int why
Fit: pod fits:int wanted:int~ why:str~ atLeast?:bool nodes?:int withPreemption?:int~ preempting?:int
FitShape: shape like nodes:int fits:int withPreemption:int~ perNode:PerNode limits:[ShapeLimit]
PerNode: least:int most:int
ShapeLimit: why nodes:int
FitLimit: why nodes?:[str] pods?:int
PreemptedPod: pod priority:int node preemptor preemptorWorkload preemptorPriority:int
IncompleteGang: group left:int minCount:int releasedAfterSeconds:number~ survivors:[str]
PotentialPreemptor: pods:[str] workload priority:int effect victims:[str]
Difference: workload what:gains|loses|moves ready:Pair shortSeconds:Pair disrupted:Pair moved:int
Pair: before:number after:number
WorkloadImpact: shortLasts:bool why:str~
NodeHours: with:number without:number
"""


Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT_OR_NUMBER: Schema = {"type": ["string", "number"]}
_TYPES: dict[str, Schema] = {
    "any": {},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string"},
    "float": {"type": "number"},
    "int": {"type": "integer"},
    "intOrString": _TEXT_OR_NUMBER,
    "long": {"type": "integer"},
    "microtime": {"type": "string"},
    "number": {"type": "number"},
    "quantity": _TEXT_OR_NUMBER,
    "str": {"type": "string"},
    "time": {"type": "string"},
}
"""The single values of tables and of the catalogue."""


def reference(name: str) -> Schema:
    """Return a reference to a type."""
    return {"$ref": f"#/$defs/{name}"}


def definitions(table: str) -> dict[str, Schema]:
    """Return the types of a table by name; indented lines continue the one before."""
    lines = (line.partition(": ") for line in table.replace("\n  ", " ").splitlines())
    return {name: _object(fields.split()) for name, _, fields in lines}


def document(title: str, root: Schema, defined: dict[str, Schema]) -> Schema:
    """Return a complete schema of ``root``."""
    return {"$schema": DIALECT, "title": title, **root, "$defs": dict(sorted(defined.items()))}


def _object(fields: list[str]) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for written in fields:
        name, _, type_ = written.partition(":")
        if not name.endswith("?"):
            required.append(name)
        properties[name.removesuffix("?")] = _table_type(type_ or "str")
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return found


def _table_type(written: str) -> Schema:
    if written.endswith("~"):
        return {"anyOf": [_table_type(written[:-1]), {"type": "null"}]}
    if written.startswith("["):
        return {"type": "array", "items": _table_type(written[1:-1])}
    if written.startswith("{"):
        return {"type": "object", "additionalProperties": _table_type(written[1:-1])}
    if "|" in written:
        return {"enum": written.split("|")}
    return dict(_TYPES[written]) if written in _TYPES else reference(written)


def _own_schema(type_: Any) -> Schema:
    """Return the schema of a type that reads its values itself."""
    return {**type_.SCHEMA}


def scenario_schema() -> Schema:
    """Return the schema of a Scenario: each step has exactly one action, each applied object the fields of its kind."""
    (root,), defined = msgspec.json.schema_components(
        [WrittenScenario], schema_hook=_own_schema, ref_template="#/$defs/{name}"
    )
    for type_ in defined.values():
        for field in type_["properties"].values():
            if field.get("description") == DURATION_SCHEMA["description"] and "default" in field:
                field["default"] = format_duration(field["default"])
    defined["Step"]["oneOf"] = [{"required": [name]} for name in STEP_NAMES]
    defined["ScenarioObject"] = {
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": kinds()}},
        "allOf": [{"if": {"properties": {"kind": {"const": kind}}}, "then": reference(kind)} for kind in kinds()],
    }
    objects = object_schemas()
    if defined.keys() & objects.keys():
        raise AssertionError(f"types are defined twice: {', '.join(sorted(defined.keys() & objects.keys()))}")
    return document("A Scenario of podium simulate", root, defined | objects)


def kinds() -> list[str]:
    """Return the kinds with known fields that a scenario may apply, by name."""
    return sorted({kind.name for kind in KINDS.values() if is_type(kind.name)})


def object_schemas() -> dict[str, Schema]:
    """Return the types of all those kinds and of their fields, by name. A field may be null, as in manifests."""
    found: dict[str, Schema] = {}
    waiting = kinds()
    versions = {kind.name: kind.api_version for kind in KINDS.values()}
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        fields = fields_of(name)
        properties = {field: _field_type(each.type, waiting) for field, each in fields.items()}
        found[name] = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
        if name in versions and "kind" in fields:
            found[name]["required"] = ["apiVersion", "kind"]
            properties |= {"kind": {"const": name}, "apiVersion": {"type": "string"}}
    return found


def _field_type(type_: Type, named: list[str]) -> Schema:
    """Return the schema of a field's type; the types that it refers to are added to ``named``."""
    match type_:
        case Leaf():
            types = _TYPES[type_.type].get("type", [])
            return {"type": [*([types] if isinstance(types, str) else types), "null"]} if types else {}
        case ListOf():
            return {"type": ["array", "null"], "items": _field_type(type_.item, named)}
        case MapOf():
            return {"type": ["object", "null"], "additionalProperties": _field_type(type_.value, named)}
        case Object():
            named.append(type_.name)
            return reference(type_.name)


def _answer_schema(title: str, table: str, *roots: str, structs: Sequence[type[msgspec.Struct]] = ()) -> Schema:
    """Return the schema of an answer. It is open: additional keys do not change its version.

    An answer has all fields of the ``structs``, and those that the table adds to them.
    """
    states: dict[str, Schema] = msgspec.json.schema(DisruptionState)["$defs"]
    root = {"anyOf": [reference(name) for name in roots]} if len(roots) > 1 else reference(roots[0])
    found = definitions(COMMON + table)
    for name, derived in msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")[1].items():
        properties = {**derived["properties"], **found.get(name, {}).get("properties", {})}
        found[name] = {"type": "object", "properties": properties, "required": list(properties)}
    return document(title, root, found | states)


def _plan_schema() -> Schema:
    # The questions import all that they decide with.
    from podium.app.planning.deciding.protection import PriorityClassThreat
    from podium.app.planning.impact import NodeImpact, PlanFinding, WorkloadImpact
    from podium.app.planning.outcomes import WorkloadLoss
    from podium.app.planning.questions.deploy import PlannedPreemption

    structs = (NodeImpact, PlanFinding, PlannedPreemption, PriorityClassThreat, WorkloadImpact, WorkloadLoss)
    return _answer_schema(
        "What podium plan -o json answers", SIMULATE + RESCHEDULE + PLAN, "PlanAnswer", structs=_RESULT + structs
    )


_RESULT = (Disruption, FinalNode, SimEvent, UsageEntry)
_EXPLAIN_ROOTS = ("Explanation", "WorkloadExplanation", "NodeAnswer")
SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "explain": lambda: _answer_schema("What podium explain -o json answers", EXPLAIN, *_EXPLAIN_ROOTS),
    "simulate": lambda: _answer_schema("What podium simulate -o json answers", SIMULATE, "Result", structs=_RESULT),
    "plan": _plan_schema,
    "reschedule": lambda: _answer_schema("What podium reschedule -o json answers", RESCHEDULE, "Rescheduling"),
    "scenario": scenario_schema,
}
"""The function that makes each schema."""


def schema_named(name: str) -> Schema:
    """Return the schema of that name. Raises KeyError for an unknown one."""
    return SCHEMAS[name]()
