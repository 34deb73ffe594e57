"""The forms of the questions on the page, which follow from the options of their commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import click
import msgspec

from podium.api.errors import InputError, shown
from podium.app.console.options import Duration
from podium.app.explaining.command import explain
from podium.app.planning.command import plan
from podium.app.planning.options import deciding_options, playing_options

Kind = Literal["text", "names", "lines", "whole", "duration", "yaml", "flag"]
"""The content of a field: a line, names with spaces between them, lines, a number of 0 or more, a duration, objects in
YAML, or yes or no."""

_QUESTIONS = {
    "deploy": "What happens if I deploy this?",
    "drain": "What happens if I drain these nodes?",
    "fail": "What if nodes fail?",
    "nodes": "What if there were more, fewer or other nodes?",
    "change": "What if I change an object?",
    "pending": "Why are pods pending?",
    "fit": "How many of these fit?",
    "survive": "Will it survive?",
    "diff": "Which of two settings is better?",
    "reschedule": "Which pods would a rescheduler move?",
    "upgrade": "What if the control plane had another version?",
}
_EXPLAINED = ("target", "namespace", "node", "scheduler")
# Options of every question that is played.
_PLAYED = ("until_ns", "start_delay_ns")
_EXAMPLES = {
    "assignments": "replicas=5\nrequests.cpu=2",
    "nodes": "node-1 node-2",
    "selector": "topology.kubernetes.io/zone=b",
    "target": "deploy/web",
}
_LONGEST = 1_000


class FormField(msgspec.Struct, frozen=True, kw_only=True, rename={"is_required": "required"}):
    """A field of a form: its name in the request, its title, its kind, an example, a hint, and what the page suggests.

    ``parameter`` is that of the command, and ``flag`` the option that sets it, "" for an argument.
    """

    name: str
    title: str
    kind: Kind
    example: str
    hint: str
    is_required: bool
    suggests: Literal["", "nodes", "targets"]
    parameter: str
    flag: str

    @classmethod
    def of(cls, parameter: click.Parameter) -> FormField:
        """Return the field for a parameter of a command."""
        name, metavar = parameter.name or "", parameter.metavar or ""
        flag = parameter.opts[-1] if isinstance(parameter, click.Option) else ""
        words = (flag.removeprefix("--") or name).replace("-", " ")
        help_text = parameter.help or "" if isinstance(parameter, click.Option) else ""
        return cls(
            name=words.replace(" ", "-"),
            title=words.capitalize(),
            kind=_kind(parameter, metavar),
            example=_EXAMPLES.get(name, ""),
            hint=help_text.removesuffix(" May be repeated."),
            is_required=parameter.required,
            suggests="targets" if name == "target" else "nodes" if "NODE" in metavar else "",
            parameter=name,
            flag=flag,
        )

    def arguments(self, value: Any) -> list[str]:
        """Return the field's arguments on a command line. Raises InputError for a value of another type."""
        if self.kind == "flag":
            if not isinstance(value, bool) and value not in ("", None):
                raise InputError(f"{self.title}: is neither true nor false", path=f".values.{self.name}")
            return [self.flag] if value else []
        if not isinstance(value, str) and value is not None:
            raise InputError(f"{self.title}: is not text", path=f".values.{self.name}")
        texts = [(value or "").strip()]
        if self.kind == "names":
            texts = texts[0].replace(",", " ").split()
        elif self.kind == "lines":
            texts = [line.strip() for line in texts[0].splitlines()]
        elif self.kind in ("whole", "duration") and len(texts[0]) > _LONGEST:
            raise InputError(f"{self.title}: {shown(texts[0])} is too long", path=f".values.{self.name}")
        return [f"{self.flag}={text}" if self.flag else text for text in texts if text]


def _kind(parameter: click.Parameter, metavar: str) -> Kind:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "flag"
    if isinstance(parameter.type, Duration):
        return "duration"
    if isinstance(parameter.type, click.IntRange):
        return "whole"
    if "FILE" in metavar:
        return "yaml"
    if parameter.multiple or parameter.nargs == -1:
        return "names" if "NODE" in metavar else "lines"
    return "text"


class Form(msgspec.Struct, frozen=True):
    """A question: its name (as in `podium plan NAME`), a title, a short description, and its fields.

    A question that is played in virtual time has further fields, its ``rest``.
    """

    name: str
    title: str
    about: str
    fields: tuple[FormField, ...]
    rest: tuple[FormField, ...] = ()

    def arguments(self, command: click.Command, given: Any) -> dict[str, Any]:
        """Return the arguments of the command, by name. Raises InputError for unknown fields and wrong values.

        The values of fields for files are the texts of such files.
        """
        if not isinstance(given, Mapping):
            raise InputError("the values of a form must be an object", path=".values")
        fields = {field.name: field for field in (*self.fields, *self.rest)}
        for name in given:
            if name not in fields:
                raise InputError(f"{self.name} has no field {shown(name)}; it has {', '.join(fields)}", path=".values")
        by_parameter = {field.parameter: field for field in fields.values()}
        own = [parameter for parameter in command.params if parameter.name in by_parameter]
        written = {field: field.arguments(given.get(field.name)) for field in fields.values()}
        options = [text for field, texts in written.items() if field.flag for text in texts]
        names = [text for field, texts in written.items() if not field.flag for text in texts]
        try:
            return click.Command(self.name, params=own).make_context(self.name, [*options, "--", *names]).params
        except click.MissingParameter as error:
            title = by_parameter[(error.param and error.param.name) or ""].title
            raise InputError(f"{self.name} needs to know: {title}", path=".values") from None
        except click.BadParameter as error:
            field = by_parameter[(error.param and error.param.name) or ""]
            raise InputError(f"{field.title}: {error.message}", path=f".values.{field.name}") from None


@click.command()
@deciding_options("pods")
@playing_options
def _any_plan(**_: Any) -> None:
    pass


_SHARED = {parameter.name for parameter in _any_plan.params}
# The page has a field for whole documents instead.
_ON_COMMAND_LINE = {"patch"}


def _form(command: click.Command, title: str) -> Form:
    own = tuple(
        FormField.of(parameter) for parameter in command.params if parameter.name not in _SHARED | _ON_COMMAND_LINE
    )
    rest = tuple(FormField.of(parameter) for parameter in command.params if parameter.name in _PLAYED)
    return Form(command.name or "", title, command.get_short_help_str(200), own, rest)


EXPLAIN = Form(
    "explain",
    "Why is it there, or not?",
    "The verdict of every plugin on every node, for a pod or the next pod of a workload.",
    tuple(FormField.of(parameter) for parameter in explain.params if parameter.name in _EXPLAINED),
)
"""The question about one pod, which is decided and not played."""

PLANS: tuple[Form, ...] = tuple(_form(plan.commands[name], title) for name, title in _QUESTIONS.items())
"""The questions of `podium plan`."""

FORMS = {form.name: form for form in (EXPLAIN, *PLANS)}
"""All of them, by name."""
