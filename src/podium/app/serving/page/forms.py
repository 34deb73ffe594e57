"""The forms of the questions on the page, which the page draws and the server answers."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["text", "names", "lines", "whole", "duration", "choice", "yaml", "flag"]
"""The content of a field: a line, names with spaces between them, lines, a number of 0 or more, a duration, one of some
words, objects in YAML, or yes or no."""

Suggestion = Literal["", "nodes", "pods", "targets"]
"""The objects of the cluster that the page suggests."""


class Field(msgspec.Struct, frozen=True, kw_only=True, rename={"is_required": "required"}):
    """A field of a form: its name in the request, its title, its kind, an example, and a hint."""

    name: str
    title: str
    kind: Kind = "text"
    example: str = ""
    hint: str = ""
    is_required: bool = False
    suggests: Suggestion = ""
    choices: tuple[str, ...] = ()


class Form(msgspec.Struct, frozen=True):
    """A question: its name (as in `podium plan NAME`), a few words about it, and its fields.

    A question that is played in virtual time has the fields `PLAYED`, too, as its ``rest``.
    """

    name: str
    title: str
    about: str
    fields: tuple[Field, ...]
    rest: tuple[Field, ...] = ()


PLAYED: tuple[Field, ...] = (
    Field(name="until", title="Stop after", kind="duration", hint="otherwise when nothing is left to happen"),
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
        Field(name="scheduler", title="Scheduler", hint="in place of the one that the pod asks for"),
    ),
)
"""The question about one pod, which is decided and not played."""

PLANS: tuple[Form, ...] = (
    Form(
        "deploy",
        "What happens if I deploy this?",
        "Where each pod goes, which pods it preempts, where those go, to the end; what stays pending.",
        (Field(name="objects", title="Objects", kind="yaml", is_required=True),),
        PLAYED,
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
            Field(name="force", title="Pods, too, without a controller", kind="flag"),
            Field(name="deleteEmptydirData", title="Pods, too, with emptyDir volumes", kind="flag"),
            Field(name="disableEviction", title="Past disruption budgets", kind="flag"),
        ),
        PLAYED,
    ),
    Form(
        "fail",
        "What if nodes fail?",
        "Which workloads lose pods, which get them back and when, and which do not.",
        (_NODES, _SELECTOR, Field(name="for", title="They come back after", kind="duration", example="10m")),
        PLAYED,
    ),
    Form(
        "nodes",
        "What if there were more, fewer or other nodes?",
        "Which pods find a node then, and which lose one. Removed nodes are drained first.",
        (
            Field(name="add", title="Add so many", kind="whole", example="3"),
            Field(name="like", title="like this node", suggests="nodes"),
            Field(name="objects", title="or such nodes", kind="yaml"),
            Field(name="remove", title="Remove", kind="names", suggests="nodes"),
            Field(name="selector", title="Remove those with these labels", example="pool=old"),
        ),
        PLAYED,
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
        PLAYED,
    ),
    Form(
        "patch",
        "What if I patch objects?",
        "Strategic merge patches, each with the kind and name of its object.",
        (Field(name="patches", title="Patches", kind="yaml", is_required=True),),
        PLAYED,
    ),
    Form(
        "pending",
        "Why do they all wait?",
        "Every pending pod, by cause, with the one change that would let most of them in.",
        (Field(name="namespace", title="Of this namespace", hint="of all unless given"),),
    ),
    Form(
        "fit",
        "How many of these fit?",
        "How many, where, and what ends it, by the shape of nodes.",
        (
            Field(name="objects", title="A pod, or a workload", kind="yaml", is_required=True),
            Field(name="replicas", title="So many of them", kind="whole", hint="as many as fit unless given"),
            Field(name="preempt", title="They may preempt", kind="flag"),
            Field(name="afterPending", title="Pending pods go first", kind="flag"),
        ),
    ),
    Form(
        "survive",
        "Will it survive?",
        "Which pods could preempt it now, and the smallest change that would protect it.",
        (
            _TARGET,
            _NAMESPACE,
        ),
    ),
    Form(
        "diff",
        "Which of two settings is better?",
        "Which workloads gain, lose or move. A setting is objects such as priority classes and budgets, and "
        "configurations of the scheduler and the rescheduler.",
        (
            Field(name="before", title="Before", kind="yaml", hint="the cluster as it is unless given"),
            Field(name="after", title="After", kind="yaml", is_required=True),
            Field(name="renewPriorities", title="Pods get the priorities of changed classes", kind="flag"),
        ),
        PLAYED,
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
                hint="a cautious one unless given",
            ),
        ),
        PLAYED,
    ),
)
"""The questions of `podium plan`."""

FORMS = {form.name: form for form in (EXPLAIN, *PLANS)}
"""All of them, by name."""
