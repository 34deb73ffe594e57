"""The pages of docs/reference, generated from the code: commands with options, settings with defaults, kinds.

`.venv/bin/python tools/reference.py` writes them; `--check` lists outdated ones.
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import inspect as types

from podium.api.kinds import KINDS, Kind
from podium.api.times import format_duration
from podium.api.versions.apis import ServedVersion, gates_of_fields, served_versions
from podium.api.versions.gates import MINORS, STAGES, Gate, Stage, letters
from podium.api.versions.release import Behavior
from podium.app.console.command import FOR_KUBECTL, KUBECTL_PLUGIN, SUBCOMMANDS, podium
from podium.plugins.registry import IN_TREE
from podium.plugins.rescheduling.registry import IN_TREE as POLICIES
from podium.store.api_resources import BUILT_IN

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import upstream_scope

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
_MADE = "This page is made from the code by `tools/reference.py`"
_SHARED = "Shared options"
_OF_COMPONENTS = "Options of components"
_ABOUT_COMPONENTS = "Options of three or more commands that run until you stop them."
# Shorter names for click's own.
_METAVARS = {"INTEGER": "N", "INTEGER RANGE": "N", "FLOAT RANGE": "X"}
_LONGEST_DEFAULT = 60
_LONGEST_LINE = 120
# Larger limits are those of the number's type and not worth showing.
_HIGHEST = 2**31 - 1
_WORDS: Mapping[type, str] = {types.AnyType: "anything", types.BoolType: "`true` or `false`", types.StrType: "text"}


def versions_page() -> str:
    """Return what differs between the supported Kubernetes versions."""
    text = (
        "Podium decides as kube-scheduler of 1.31 to 1.36, which were measured, and 1.37, which was read from its "
        "source; answers say so. `--kubernetes-version 1.34` chooses one, and so do `kubernetes_version` in Python and "
        "`spec.kubernetesVersion` of a Scenario. Without any, the version of the Snapshot or of the API server "
        "decides, then that of the newest kubelet (a guess), then 1.36. `podium up` answers `/version` with the "
        f"version that it follows. {_MADE}."
    )
    lines = [
        *("# Kubernetes versions", "", textwrap.fill(text, _LONGEST_LINE), ""),
        "## Behaviors",
        "",
        *textwrap.wrap(
            "Two versions differ in every behavior that begins after the older one, and not after the newer one.",
            _LONGEST_LINE,
        ),
    ]
    behaviors = itertools.groupby(Behavior, lambda one: one.value.since)
    for since, since_then in behaviors:
        said = [
            (f"**{one.value.area}**", f"{one.value.now}; before: {one.value.before} ({one.value.source})")
            for one in since_then
        ]
        lines += ["", f"Since {since}:", "", *_listed(said).splitlines()]
    lines += [
        "",
        "## Feature gates",
        "",
        *textwrap.wrap(
            "The gates that Podium asks, or whose fields it drops. `--feature-gates` takes all gates of a version; "
            "others have no effect. Each stage is named with the version that it begins in; 1.31 stands for that or "
            "an earlier one. Gates in alpha are off, those in GA on. Some patch levels differ: "
            "`SchedulerAsyncAPICalls` is on in 1.34.0, 1.34.1 and 1.35.0.",
            _LONGEST_LINE,
        ),
        "",
    ]
    asked = sorted({*map(str, Gate), *gates_of_fields()})
    lines += _listed([(gate, ", ".join(_stages(letters()[gate]))) for gate in asked]).splitlines()
    lines += [
        *("", "## API versions", ""),
        *textwrap.wrap(
            "The kinds that not every version serves in the same API versions. With a gate, a version serves them only "
            "if that is on. Objects in inputs may be in any of them. `podium up` answers 404 for what its version does "
            "not serve, such as `pods/resize` before 1.33.",
            _LONGEST_LINE,
        ),
        *("", "| API version | kinds | served by | gate |", "|---|---|---|---|", *_served_rows()),
    ]
    lines += ["", "## Not modelled", ""]
    lines += map(_item, _NOT_MODELLED)
    return "\n".join(lines) + "\n"


def _stages(cells: str) -> Iterator[str]:
    """Yield each stage of a gate, with the first minor version that has it."""
    before = ""
    for minor, letter in zip(MINORS, cells, strict=True):
        stage = STAGES.get(letter)
        said = _stage(stage) if stage is not None else "removed" if before else ""
        if said != before:
            yield f"1.{minor} {said}"
        before = said


def _stage(stage: Stage) -> str:
    """Return a stage in words; gates in alpha are off and those in GA are on unless the words say otherwise."""
    usual = {"alpha": False, "GA": True}
    return stage.name if usual.get(stage.name) == stage.default else f"{stage.name} {'on' if stage.default else 'off'}"


def _served_rows() -> list[str]:
    kinds = dict[ServedVersion, list[str]]()
    for (_, kind), versions in served_versions().items():
        for version in versions:
            kinds.setdefault(version, []).append(kind)
    rows = []
    for version, names in kinds.items():
        known = [f"1.{minor}" for minor in MINORS if minor in version.minors]
        served = known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"
        gate = f"`{version.gate}`" if version.gate else ""
        rows.append(f"| `{version.api_version}` | {', '.join(names)} | {served} | {gate} |")
    return rows


_NOT_MODELLED = (
    "`OpportunisticBatching` (on since 1.35) reuses the ranking of nodes for a pod that equals the one before it. It "
    "has no effect with the default configuration. With `defaultingType: List` and no default constraints, 1.35 and "
    "later may batch pods that all its plugins sign; Podium decides each pod anew, which can choose another of several "
    "nodes.",
    "Before 1.36 the slices and pools of devices are searched in the order of a Go map. Podium searches by name.",
    "1.37 was read, not measured: the scheduler's gates at commit 080d02a09a47 of kubernetes/kubernetes, groups as "
    "victims at 06e67ba2130d, the volumebinding scorer at de741dc85409, the types at 10b39a39bcee of kubernetes/api "
    "(v0.37.0-beta.0), the changelog up to v1.37.0-alpha.1, and the documentation. By default it differs from 1.36 in "
    "storage scores (`StorageCapacityScoring`; if several capacities of a class suffice on a node, the first by name "
    "counts, and upstream takes any), required CSI drivers (`VolumeLimitScaling`), nominations of gated pods, updates "
    "of StatefulSets (`MaxUnavailableStatefulSet`), and the API versions above.",
    "`GenericWorkload` of 1.37 took over `GangScheduling` and `WorkloadAwarePreemption`. With it, as with these in "
    "1.36, gangs are scheduled, and groups with the disruption mode PodGroup (`all`) are victims as a whole. Podium "
    "chooses among the possible sets of victims by its own search, and [gangs](gangs.md) preempt by its own rules. In "
    "1.35, gangs follow the Workload that pods name; Podium reads PodGroups there, too.",
    "`InPlacePodVerticalScalingSchedulerPreemption` (alpha in 1.37) was read, not measured: KEP-5836 at commit "
    "0210ab516676 of kubernetes/enhancements, the plugin DeferredPodScheduling at 9e3bfa70cbf2 of "
    "kubernetes/kubernetes. A pod with the condition PodResizePending and the reason Deferred is checked against the "
    "resources of its own node. If it does not fit, DefaultPreemption chooses victims there, unless the pod's policy "
    "is Never or the node has `spec.podPreemptionPolicy.disableResizePreemption`. The pod gets only the event "
    "FailedScheduling. It is attempted again when its requests, the node, or another pod on the node change. "
    "Differences: these pods come before the queue, by priority, without a backoff; no filter but NodeResourcesFit is "
    "asked; groups as victims go as the settings of DefaultPreemption say.",
    "In simulations kubelets answer no new resize: a changed request counts for the scheduler at once, and what the "
    "pod holds on its node stays. Those of `podium up` answer each. A resize beyond the whole node is refused in all "
    "versions, as in 1.35 and later.",
    "`StaleControllerConsistency*` (on since 1.36) has no effect: Podium's controllers wait in all versions until they "
    "have observed their own writes.",
    "In 1.34, an invalid pool of devices ends the search where it is met, in the order of a Go map. Podium reports it "
    "if no other pool suffices, as 1.35 does.",
    "PodGroup and Workload are served in all versions. Of the newer API versions, Podium drops `preemptionPolicy` and "
    "`parentCompositePodGroupName`, and `compositePodGroupTemplates` is unknown: the gates `PodGroupPreemptionPolicy` "
    "and `CompositePodGroup` have no effect.",
    "Bindings that fail for a moment: 1.37 retries the request at once (#138855). Podium retries after a second.",
    "Allocators before 1.34, with `DynamicResourceAllocation` turned on, are those of 1.34.",
    "Gates of 1.37 outside the scheduler follow its changelog up to the first alpha release.",
    "Defaults and validation are those of 1.36, apart from fields of gates, and the defaults that a row above names. "
    "An update keeps the fields of a gate that is off if the object has some of them already, as upstream does.",
)


def pages() -> dict[str, str]:
    """Return the text of each page, by file name."""
    return {
        "commands.md": commands_page(),
        "settings.md": settings_page(),
        "kinds.md": kinds_page(),
        "upstream-tests.md": scope_page(),
        "../versions.md": versions_page(),
    }


def scope_page() -> str:
    """Return which of Kubernetes' own tests of API servers and controllers are out of scope, and why."""
    about = (
        "[`podium up`](../up.md) is a control plane for tests and plans. One rule says which of the suites `test/e2e` "
        "and `test/cmd` of Kubernetes v1.36 it is meant to pass: **a test is in scope if it bears on which pods run, "
        "wait or are disrupted, or on testing a controller, and needs none of the following.** A group that is not "
        "listed is in scope, and so is the rest of a group of which a part is listed. Paths are below `test/e2e` "
        "unless `test/cmd` precedes them. The rules of Kubernetes' tests of schedulers are in "
        "[proof](../proof.md#kubernetes-own-tests).\n\n"
        "This page is made from a table by `tools/reference.py`."
    )
    parts = ["# Kubernetes' own tests\n", f"{prose(about)}\n"]
    left_out = [
        *upstream_scope.rows(upstream_scope.E2E),
        *((f"test/cmd: {paths}", what, reason) for paths, what, reason in upstream_scope.rows(upstream_scope.TEST_CMD)),
    ]
    for name, (need, why) in upstream_scope.REASONS.items():
        parts += [f"## Out of scope: {name}\n", f"{prose(f'The test {need}: {why}.')}\n"]
        parts.append(_listed([(paths, what) for paths, what, reason in left_out if reason == name]))
    said = (
        "Steps of these groups that are in scope were played against `podium up`, by scripts and not by Kubernetes' "
        "own programs, and had the results that the groups expect. The tests beside them state their rules."
    )
    parts += ["## Played\n", f"{prose(said)}\n"]
    for suite, text in upstream_scope.PLAYED_SUITES:
        parts += [f"### {suite}\n", _listed(upstream_scope.played(text))]
    differences = table(
        ("path", "what Podium does", "why, or its effect"), upstream_scope.rows(upstream_scope.DIFFERENCES)
    )
    parts += ["## Differences in test/integration\n", differences]
    return "\n".join(parts)


def prose(text: str) -> str:
    """Return paragraphs with filled lines."""
    return "\n\n".join(
        textwrap.fill(" ".join(part.split()), _LONGEST_LINE, break_long_words=False, break_on_hyphens=False)
        for part in text.split("\n\n")
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, with bars in cells escaped."""
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def commands_page() -> str:
    """Return every command with its help, then the options that three or more commands share."""
    about = (
        f"{_MADE}. It lists each command with its arguments and options, as `--help` does. `podium --version` prints "
        "the version, `podium --traceback COMMAND` shows where in the code an error came from, and `-h` is short for "
        "`--help` everywhere. Options that several commands share are listed once: "
        f"[shared options]({_anchor(_SHARED)}), [options of components]({_anchor(_OF_COMPONENTS)})."
    )
    parts = ["# Commands\n", f"{prose(about)}\n"]
    commands = list(_commands())
    shared = _shared([(command, context) for _, command, context in commands])
    for name, command, context in commands:
        parts += _command(command, context, name, shared)
    for title, said in ((_SHARED, "Options of three or more commands."), (_OF_COMPONENTS, _ABOUT_COMPONENTS)):
        parts += [f"## {title}\n", f"{prose(said)}\n"]
        parts.append(_listed([row for row, where in shared.items() if where == title]))
    return "\n".join(parts)


def _commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield the name, the command and the parent's context of each command below `podium`."""
    for name in SUBCOMMANDS:
        context = click.Context(podium, info_name=KUBECTL_PLUGIN if name in FOR_KUBECTL else "podium")
        _, command, _ = podium.resolve_command(context, [name])
        if command is None:
            raise LookupError(f"{name} is listed and not there")
        yield name, command, context


def _shared(commands: Sequence[tuple[click.Command, click.Context]]) -> dict[tuple[str, ...], str]:
    """Return the rows of options of three or more commands, each with the heading below which it is listed."""
    owners: dict[tuple[str, ...], list[bool]] = {}
    for command, context in commands:
        parts = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
        options = [each for part in parts for each in part.params if isinstance(each, click.Option)]
        is_component = any("--bind-address" in each.opts for each in options)
        for row in dict.fromkeys(_row(each, context) for each in options):
            owners.setdefault(row, []).append(is_component)
    return {
        row: _OF_COMPONENTS if all(components) else _SHARED for row, components in owners.items() if len(components) > 2
    }


def _command(
    command: click.Command, parent: click.Context, name: str, shared: Mapping[tuple[str, ...], str]
) -> Iterator[str]:
    """Return the parts about a command and its subcommands; `shared` options are listed elsewhere, "" if above."""
    context = click.Context(command, info_name=name, parent=parent)
    depth = 2 if context.parent is None or context.parent.parent is None else 3
    yield f"{'#' * depth} {context.command_path}\n"
    # In help, click ends at a form feed, and keeps lines after a backspace.
    shown = (command.help or "").partition("\f")[0].replace("\b\n", "")
    yield f"{prose(inspect.cleandoc(shown))}\n"
    arguments = [each.make_metavar(context) for each in command.params if isinstance(each, click.Argument)]
    if arguments:
        yield f"```text\n{' '.join([context.command_path, *arguments, '[OPTIONS]'])}\n```\n"
    yield from _options([_row(each, context) for each in command.params if isinstance(each, click.Option)], shared)
    if isinstance(command, click.Group):
        yield from _below(command, context, shared)


def _below(group: click.Group, context: click.Context, shared: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    """Return a group's commands, after options that three or more share, listed once for the same commands."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for name in group.list_commands(context):
        for each in group.commands[name].params:
            if isinstance(each, click.Option):
                owners.setdefault(_row(each, context), []).append(name)
    common: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for row, names in owners.items():
        if len(names) > 2:
            common.setdefault(tuple(names), []).append(row)
    for which, rows in sorted(common.items(), key=lambda item: (-len(item[0]), item[0])):
        whose = "each command" if len(which) == len(group.commands) else ", ".join(f"`{name}`" for name in which)
        yield f"{prose(f'Options of {whose} of `{context.command_path}`:')}\n"
        yield from _options(rows, shared)
    above = dict.fromkeys((row for rows in common.values() for row in rows), "")
    for name in group.list_commands(context):
        yield from _command(group.commands[name], context, name, {**shared, **above})


def _options(rows: Sequence[tuple[str, ...]], shared: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    """Return the table of options, and the names of those that are listed below a heading of shared ones."""
    own = [row for row in rows if row not in shared]
    # Options such as --no-job-controller say all by their names.
    plain = [row for row in own if row[1] == f"Run without the {row[0].strip('`').removeprefix('--no-')}."]
    if plain:
        names = ", ".join(name for name, _ in plain)
        own = [*(row for row in own if row not in plain), (names, "Run without that component.")]
    if own:
        yield _listed(own)
    for title in (_SHARED, _OF_COMPONENTS):
        # The first of an option's names is enough to find it.
        named = ", ".join("`{}`".format(re.split("[` ]", row[0])[1]) for row in rows if shared.get(row) == title)
        if named:
            yield f"{prose(f'[{title}]({_anchor(title)}): {named}')}\n"


def _listed(rows: Sequence[tuple[str, ...]]) -> str:
    """Return options as a list, each with its meaning."""
    return "".join(f"{_item(f'{names}: {meaning}')}\n" for names, meaning in rows)


def _item(text: str) -> str:
    """Return an item of a list with filled lines."""
    return textwrap.fill(
        f"- {text}", _LONGEST_LINE, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _anchor(title: str) -> str:
    return f"#{title.lower().replace(' ', '-')}"


def _row(option: click.Option, context: click.Context) -> tuple[str, ...]:
    """Return an option's names with its value, and its help with the default."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    said = " ".join((option.help or "").split())
    if isinstance(option.type, click.Choice):
        listed = ", ".join(map(str, option.type.choices))
        # Its names take the place of a value, which would repeat them, and so does help that lists them.
        if listed not in said:
            said = f"{said} One of {listed}.".lstrip()
    elif not option.is_flag:
        value = option.make_metavar(context)
        names = f"{names[:-1]} {_METAVARS.get(value, value)}`"
    if option.show_default and option.default is not None:
        said = f"{said.removesuffix('.')}; default: `{option.default}`." if said else f"Default: `{option.default}`."
    return names, said


def settings_page() -> str:
    """Return the arguments of plugins and policies."""
    return "\n".join(
        [
            "# Settings\n",
            prose(
                f"{_MADE}. It lists types, limits and defaults. For the meaning of arguments, see "
                "[configuration](../configuration.md#arguments) and "
                "[policies of the rescheduler](../rescheduling-policies.md). The rescheduler's own "
                "[configuration](../rescheduler.md#configuration) is described on its page."
            )
            + "\n",
            "## Arguments of the scheduler's plugins\n",
            _arguments(IN_TREE),
            "## Arguments of the rescheduler's policies\n",
            _arguments(POLICIES),
        ]
    )


def _arguments(registry: Mapping[str, Any]) -> str:
    """Return the arguments of all entries of a registry; those of a class are in the struct beside it."""
    parts = []
    for name, factory in registry.items():
        struct = getattr(sys.modules[factory.__module__], f"{name}Args", None)
        found = list(_fields(struct)) if struct is not None else []
        if found:
            said = [(path, f"{kind}; default: {default}" if default else kind) for path, kind, default in found]
            parts.append(f"### {name}\n\n{_listed(said)}")
    return "\n".join(parts)


def _fields(struct: type[msgspec.Struct], path: str = "") -> Iterator[tuple[str, str, str]]:
    """Return the fields of a struct; nested ones by their paths."""
    for field in types.type_info(struct).fields:  # type: ignore[attr-defined]
        name = f"{path}{field.encode_name}"
        kind, is_list = _plain(field.type), False
        if isinstance(kind, types.VarTupleType):
            kind, is_list = _plain(kind.item_type), True
        if isinstance(kind, types.StructType) and not kind.cls.__module__.startswith("podium.api"):
            if field.default not in (None, (), msgspec.NODEFAULT) and is_list:
                yield f"`{name}`", "list", _default(field)
            yield from _fields(kind.cls, f"{name}[]." if is_list else f"{name}.")
        else:
            yield f"`{name}`", _words(field.type), _default(field)


def _plain(kind: types.Type) -> types.Type:
    """Return a type without None."""
    if isinstance(kind, types.UnionType):
        others = [each for each in kind.types if not isinstance(each, types.NoneType)]
        return others[0] if len(others) == 1 else types.UnionType(tuple(others))
    return kind


def _words(kind: types.Type) -> str:
    """Return a type in words."""
    plain = _plain(kind)
    if isinstance(plain, types.IntType | types.FloatType):
        return ("whole number" if isinstance(plain, types.IntType) else "number") + _limits(plain)
    if isinstance(plain, types.LiteralType | types.EnumType):
        return ", ".join(f"`{value}`" for value in _values(plain))
    match plain:
        case types.CustomType():
            return "duration"
        case types.VarTupleType():
            return f"list of {_words(plain.item_type)}"
        case types.DictType():
            return f"object: {_words(plain.value_type)} by name"
        case types.StructType():
            return f"{plain.cls.__name__}, as in Kubernetes"
        case types.UnionType():
            # Quantities are text or numbers.
            is_amount = any(isinstance(each, types.StrType) for each in plain.types)
            return "text or number" if is_amount else ", or ".join(map(_words, plain.types))
    return _WORDS[type(plain)]


def _values(kind: types.LiteralType | types.EnumType) -> list[Any]:
    return list(kind.values) if isinstance(kind, types.LiteralType) else [member.value for member in kind.cls]


def _limits(number: types.IntType | types.FloatType) -> str:
    low = number.ge if number.ge is not None else number.gt
    low = None if low is not None and low <= -_HIGHEST else low
    high = None if number.le is not None and number.le >= _HIGHEST else number.le
    above = "above " if number.ge is None and number.gt is not None else ""
    if low is not None and high is not None:
        return f", {above}{low:,} to {high:,}"
    return f", {above}{low:,} or more" if low is not None else f", at most {high:,}" if high is not None else ""


def _default(field: types.Field) -> str:
    """Return a field's default, "" if there is none or the text describes it."""
    value = field.default
    if value is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is None or value is msgspec.NODEFAULT or value in ((), {}, ""):
        return ""
    if isinstance(field.type, types.CustomType):
        return f"`{format_duration(value)}`"
    text = msgspec.json.encode(value).decode()
    return f"`{text.strip(chr(34))}`" if len(text) <= _LONGEST_DEFAULT else ""


def kinds_page() -> str:
    """Return the kinds of objects that are read."""
    return "\n".join(
        [
            "# Kinds\n",
            prose(
                f"{_MADE}. It lists the kinds of objects that Podium reads, in the order in which they are created, "
                "with their API versions, their names in requests, and whether they are in a namespace and have "
                "subresources. Podium ignores other kinds in files, and [serves](../api.md) those with a definition."
            )
            + "\n",
            _listed([_kind(kind) for kind in KINDS.values()]),
        ]
    )


def _kind(kind: Kind) -> tuple[str, str]:
    """Return the name of a kind, and its API versions, names in requests, scope and subresources."""
    versions = ", ".join(f"`{version}`" for version in (kind.api_version, *kind.other_versions))
    names = ", ".join(f"`{name}`" for name in (kind.plural, *kind.short_names))
    parts = [part for part, has in (("status", kind.has_status), ("scale", kind.has_scale)) if has]
    said = [versions, names if BUILT_IN[kind.group, kind.name].served_versions else f"{names}, off by default"]
    said += ["in a namespace"] * kind.namespaced + [f"with {' and '.join(parts)}"] * bool(parts)
    return f"`{kind.name}`", "; ".join(said)


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or list outdated ones."""
    wrong = [name for name, text in pages().items() if not _is_written(name, text)]
    if "--check" not in arguments:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in wrong:
            (FOLDER / name).write_text(pages()[name])
    for name in wrong:
        print(f"docs/reference/{name}: {'is not as it should be' if '--check' in arguments else 'written'}")
    return 1 if wrong and "--check" in arguments else 0


def _is_written(name: str, text: str) -> bool:
    file = FOLDER / name
    return file.is_file() and file.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
