"""The JSON Schema of a Scenario: what may stand in it, the objects of its steps included."""

from __future__ import annotations

from podium.api.kinds import WORKLOADS
from podium.app.schemas.kubernetes import kinds, object_schemas
from podium.app.schemas.tables import Schema, definitions, document, reference
from podium.sim.scenario.scenario import API_VERSION
from podium.sim.scenario.steps import STEP_NAMES

_PODS = "|".join(("Pod", *WORKLOADS))
_TABLE = f"""
ScenarioSpec
  until?:Duration steps?:[ScenarioStep] kubelets?:ScenarioKubelets nodeLifecycle?:ScenarioNodeLifecycle
  schedulers?:[ScenarioScheduler] autoscaler?:ScenarioAutoscaler rescheduler?:any recorded?:bool
ScenarioKubelets
  memoryThreshold?:Amount pressureTransition?:Duration waitForVictims?:bool
  evictionOrder?:BytesOverRequest|PercentageOfRequest
ScenarioNodeLifecycle
  gracePeriod?:Duration
ScenarioScheduler
  name bindDelay?:Duration
ScenarioAutoscaler
  nodeGroups:[ScenarioNodeGroup] priorityCutoff?:int scanInterval?:Duration scaleDown?:ScenarioScaleDown
ScenarioNodeGroup
  name min?:int max:int startUp?:Duration template:any
ScenarioScaleDown
  utilizationThreshold?:number unneededTime?:Duration delayAfterAdd?:Duration maxDrains?:int maxEvictionTime?:Duration
  maxGracefulTermination?:Duration
ScenarioStep
  at:Duration repeat?:ScenarioRepeat apply?:[ScenarioObject] delete?:ScenarioDelete evict?:ScenarioEvict
  scale?:ScenarioScale finish?:ScenarioFinish usage?:ScenarioUsage patch?:ScenarioPatch cordon?:ScenarioNodes
  uncordon?:ScenarioNodes drain?:ScenarioDrain nodeDown?:ScenarioNodes nodeUp?:ScenarioNodes trouble?:ScenarioTrouble
  maintenance?:ScenarioMaintenance
ScenarioRepeat
  every:Duration times?:int
ScenarioDelete
  kind name? namespace? selector? outright?:bool
ScenarioEvict
  name namespace? kind?:{_PODS} gracePeriodSeconds?:int component? avoidNode?:any replacement?:ScenarioReplacement
ScenarioReplacement
  first?:bool nodeName?
ScenarioScale
  kind? name namespace? replicas:int
ScenarioFinish
  name namespace? kind?:{_PODS}
ScenarioUsage
  name namespace? kind?:{_PODS} memory?:Amount cpu?:Amount
ScenarioPatch
  kind name namespace? type?:strategic|merge|json subresource?:|status patch:ScenarioPatchBody
ScenarioNodes
  name? selector?
ScenarioDrain
  name? selector? timeout?:Duration force?:bool deleteEmptyDirData?:bool ignoreDaemonSets?:bool gracePeriodSeconds?:int
  disableEviction?:bool after? removeNode?:bool
ScenarioTrouble
  name crashAfter?:Duration rejectAfter?:Duration pods?
ScenarioMaintenance
  name in:Duration for?:Duration
"""
_TEXT_OR_NUMBER: Schema = {"type": ["string", "number"]}


def scenario_schema() -> Schema:
    """The schema; a step has exactly one thing that it does, and an object that is applied the fields of its kind."""
    defined = definitions(_TABLE, is_closed=True)
    defined["ScenarioStep"]["oneOf"] = [{"required": [name]} for name in STEP_NAMES]
    defined["Duration"] = _TEXT_OR_NUMBER | {"description": "As Go writes it, 1h30m; a bare number counts seconds."}
    defined["Amount"] = _TEXT_OR_NUMBER
    defined["ScenarioPatchBody"] = {"type": ["object", "array", "string"]}
    defined["ScenarioObject"] = {
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": kinds()}},
        "allOf": [{"if": {"properties": {"kind": {"const": kind}}}, "then": reference(kind)} for kind in kinds()],
    }
    root: Schema = {
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "Scenario"},
            "metadata": {"type": "object"},
            "spec": reference("ScenarioSpec"),
        },
        "required": ["apiVersion", "kind", "spec"],
        "additionalProperties": False,
    }
    objects = object_schemas()
    if defined.keys() & objects.keys():
        raise AssertionError(f"types are told twice: {', '.join(sorted(defined.keys() & objects.keys()))}")
    return document("A Scenario of podium simulate", root, defined | objects)
