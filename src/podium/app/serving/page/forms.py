"""The questions that a page asks, as forms: the one list of them, by which the page draws and answers are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "names", "lines", "whole", "duration", "choice", "yaml", "flag"]
"""What is written into a field: a line, names with spaces between them, a text of lines, a number of 0 or more, a
duration, one of some words, objects in YAML, or nothing but yes or no."""

Suggestion = Literal["", "nodes", "pods", "targets"]
"""What there is of the cluster that may be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form: its name in the request, its title, what is written into it, and an example of that."""

    name: str
    title: str
    kind: Kind = "text"
    example: str = ""
    told: str = ""
    is_required: bool = False
    suggests: Suggestion = ""
    choices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "example": self.example,
            "told": self.told,
            "required": self.is_required,
            "suggests": self.suggests,
            "choices": list(self.choices),
        }


@dataclass(frozen=True, slots=True)
class Form:
    """A question: its name (as in `podium plan NAME`), what it asks in a few words, and its fields.

    What `is_played` in virtual time has the fields `PLAYED`, too.
    """

    name: str
    title: str
    told: str
    fields: tuple[Field, ...]
    is_played: bool = True

    @property
    def rest(self) -> tuple[Field, ...]:
        """The fields that are seldom needed."""
        return PLAYED if self.is_played else ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "told": self.told,
            "fields": [field.to_dict() for field in self.fields],
            "rest": [field.to_dict() for field in self.rest],
        }


PLAYED: tuple[Field, ...] = (
    Field(name="until", title="Stop after", kind="duration", told="otherwise when nothing is left to happen"),
    Field(name="startDelay", title="A pod takes to start", kind="duration", example="20s"),
)
"""Further fields of every question that is played."""

_NODES = Field(name="nodes", title="Nodes", kind="names", example="node-1 node-2", suggests="nodes")
_SELECTOR = Field(name="selector", title="Nodes with these labels", example="topology.kubernetes.io/zone=b")

_TARGET = Field(
    name="target",
    title="Pod or workload",
    example="shop/web or deploy/web",
    is_required=True,
    suggests="targets",
)
_NAMESPACE = Field(name="namespace", title="Namespace", example="default")

EXPLAIN = Form(
    "explain",
    "Why is it there, or not?",
    "What every plugin says of every node about a pod, or about the next pod of a workload.",
    (
        _TARGET,
        _NAMESPACE,
        Field(name="node", title="Look at one node", suggests="nodes"),
        Field(name="scheduler", title="Scheduler", told="in place of the one that the pod asks for"),
    ),
    is_played=False,
)
"""The question about one pod, which is decided and not played."""

PLANS: tuple[Form, ...] = (
    Form(
        "deploy",
        "What happens if I deploy this?",
        "Where each pod goes, whom it preempts, where those go, to the end; what stays pending.",
        (Field(name="objects", title="Objects", kind="yaml", is_required=True),),
    ),
    Form(
        "drain",
        "What happens if I drain these nodes?",
        "How long it takes, which budget holds, what blocks it and how to unblock that.",
        (
            _NODES,
            _SELECTOR,
            Field(name="parallel", title="All at once", kind="flag"),
            Field(name="timeout", title="Give each up after", kind="duration", example="10m"),
            Field(name="gracePeriod", title="Grace period, in seconds", kind="whole"),
            Field(name="force", title="Pods, too, that nobody makes again", kind="flag"),
            Field(name="deleteEmptydirData", title="Pods, too, with emptyDir volumes", kind="flag"),
            Field(name="disableEviction", title="Past disruption budgets", kind="flag"),
        ),
    ),
    Form(
        "fail",
        "What if nodes fail?",
        "Who loses pods, who gets them back and when, and who does not.",
        (_NODES, _SELECTOR, Field(name="for", title="They come back after", kind="duration", example="10m")),
    ),
    Form(
        "nodes",
        "What if there were more, fewer or other nodes?",
        "Who finds a place then, and who loses one. Nodes that go are drained first.",
        (
            Field(name="add", title="Add so many", kind="whole", example="3"),
            Field(name="like", title="like this node", suggests="nodes"),
            Field(name="objects", title="or such nodes", kind="yaml"),
            Field(name="remove", title="Remove", kind="names", suggests="nodes"),
            Field(name="selector", title="Remove those with these labels", example="pool=old"),
        ),
    ),
    Form(
        "set",
        "What if I change a field?",
        "Any field of any object, classes and budgets included.",
        (
            Field(name="target", title="Object", example="deployment/web", is_required=True, suggests="targets"),
            _NAMESPACE,
            Field(
                name="assignments",
                title="Changes, one a line",
                kind="lines",
                example="replicas=5\nrequests.cpu=2",
                is_required=True,
            ),
        ),
    ),
    Form(
        "patch",
        "What if I patch objects?",
        "Strategic merge patches, each with the kind and name of its object.",
        (Field(name="patches", title="Patches", kind="yaml", is_required=True),),
    ),
    Form(
        "pending",
        "Why do they all wait?",
        "Every pending pod, by cause, with the one change that would let most of them in.",
        (Field(name="namespace", title="Of this namespace", told="of all unless given"),),
        is_played=False,
    ),
    Form(
        "fit",
        "How many of these fit?",
        "How many, where, and what ends it, by the shape of nodes.",
        (
            Field(name="objects", title="A pod, or a workload", kind="yaml", is_required=True),
            Field(name="replicas", title="So many of them", kind="whole", told="as many as fit unless given"),
            Field(name="preempt", title="They may preempt", kind="flag"),
            Field(name="afterPending", title="Pending pods go first", kind="flag"),
        ),
        is_played=False,
    ),
    Form(
        "survive",
        "Will it survive?",
        "Who could preempt it now, and the smallest change that would spare it.",
        (
            _TARGET,
            _NAMESPACE,
        ),
        is_played=False,
    ),
    Form(
        "diff",
        "Which of two settings is better?",
        "Which workloads gain, lose or move. A setting is objects such as priority classes and budgets, and "
        "configurations of the scheduler and the rescheduler.",
        (
            Field(name="before", title="Before", kind="yaml", told="the cluster as it is unless given"),
            Field(name="after", title="After", kind="yaml", is_required=True),
            Field(name="renewPriorities", title="Pods get the priorities of changed classes", kind="flag"),
        ),
    ),
    Form(
        "reschedule",
        "What would a rescheduler put in order?",
        "Which pods it would move where and why, and what that does to workloads.",
        (
            Field(
                name="rescheduler",
                title="ReschedulerConfiguration or DeschedulerPolicy",
                kind="yaml",
                told="a cautious one unless given",
            ),
        ),
    ),
)
"""The questions of `podium plan`."""

FORMS = {form.name: form for form in (EXPLAIN, *PLANS)}
"""All of them, by name."""
