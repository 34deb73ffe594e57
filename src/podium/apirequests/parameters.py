"""Query parameters: their meaning and validation.

Source: apimachinery (pkg/apis/meta/v1/types.go, conversion.go and validation), apiserver (pkg/endpoints/handlers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import msgspec

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.apirequests.request import FieldValidation, Verb
from podium.store.errors import StoreError, bad_request, invalid_options
from podium.store.listing import DEFAULT_LIST_OPTIONS, ListOptions
from podium.store.verbs.deletion import Propagation

Query = Iterable[tuple[str, str]]
"""The decoded names and values of a query, in order. The first value of a repeated name counts."""

ALL = "All"
"""The only value of `dryRun`: the request passes all stages, and nothing is persisted."""

# By parameter: how its text is read, and the field of ListOptions or Parameters that holds it.
_SELECTING: Mapping[str, tuple[type, str]] = {
    "labelSelector": (str, "label_selector"),
    "fieldSelector": (str, "field_selector"),
    "resourceVersion": (str, "resource_version"),
    "resourceVersionMatch": (str, "resource_version_match"),
    "limit": (int, "limit"),
    "continue": (str, "continue_token"),
    "sendInitialEvents": (bool, "send_initial_events"),
}
_PLAIN: Mapping[str, tuple[type, str]] = {
    "watch": (bool, "watches"),
    "allowWatchBookmarks": (bool, "bookmarks"),
    "timeoutSeconds": (int, "timeout_seconds"),
    "dryRun": (str, "dry_run"),
    "fieldManager": (str, "field_manager"),
    "force": (bool, "force"),
    "fieldValidation": (str, "field_validation"),
    "timeout": (str, "timeout"),
    "includeObject": (str, "include_object"),
}
# The DeleteOptions in a query, by their own names.
_DELETING = {"gracePeriodSeconds": int, "propagationPolicy": str, "orphanDependents": bool}
_TYPES = {name: type_ for name, (type_, _) in (*_SELECTING.items(), *_PLAIN.items())} | _DELETING
# For these fields, false differs from absent.
_THREE_VALUED = ("sendInitialEvents", "force")

_OPTIONS: Mapping[Verb, str] = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
_FIELD_VALIDATIONS = get_args(FieldValidation)
_PROPAGATIONS = get_args(Propagation)
_MOST_OF_A_MANAGER = 128
_INCLUDED = ("", "None", "Metadata", "Object")


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a query. `delete` are its DeleteOptions, None if it has none.

    `dry_run` is `ALL`, "" if absent, or an invalid value. `timeout` is a duration as text: how long the client waits.
    `include_object` controls the form of the response.
    """

    options: ListOptions = DEFAULT_LIST_OPTIONS
    watches: bool = False
    bookmarks: bool = False
    timeout_seconds: int = 0
    dry_run: str = ""
    field_manager: str = ""
    force: bool | None = None
    field_validation: FieldValidation = ""
    delete: Raw | None = None
    timeout: str = ""
    include_object: str = ""


NO_PARAMETERS = Parameters()


def read_parameters(query: Query) -> Parameters:
    """Return the parameters of a query. Raises StoreError 400 for an invalid value."""
    values: dict[str, Any] = {}
    dry_runs: list[str] = []
    for name, text in query:
        if name == "dryRun":
            dry_runs.append(text)
        elif name not in values and name in _TYPES:
            type_ = _TYPES[name]
            # Among booleans, only "false" and "0" are false; an empty value is true.
            is_true = text.lower() not in ("false", "0")
            values[name] = is_true if type_ is bool else _number(name, text) if type_ is int else text
    if values.get("includeObject", "") not in _INCLUDED:
        problem = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"includeObject: Invalid value: {shown(values['includeObject'])}: {problem}")
    if dry_runs:
        values["dryRun"] = dry_run_of(dry_runs)
    if not values:
        return NO_PARAMETERS
    selecting = _fields(values, _SELECTING)
    return Parameters(
        options=ListOptions(**selecting) if selecting else DEFAULT_LIST_OPTIONS,
        delete={name: values[name] for name in _DELETING if name in values} or None,
        **_fields(values, _PLAIN),
    )


def _fields(values: Mapping[str, Any], fields: Mapping[str, tuple[type, str]]) -> dict[str, Any]:
    return {field: values[name] for name, (_, field) in fields.items() if name in values}


def query_of(parameters: Parameters) -> list[tuple[str, str]]:
    """Return the query for these parameters; `read_parameters` is the inverse."""
    values: dict[str, Any] = {name: getattr(parameters.options, field) for name, (_, field) in _SELECTING.items()}
    values |= {name: getattr(parameters, field) for name, (_, field) in _PLAIN.items()}
    query = [(name, value) for name, value in values.items() if value or (value is False and name in _THREE_VALUED)]
    query += (parameters.delete or {}).items()
    return [(name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in query]


def check_parameters(verb: Verb, parameters: Parameters, *, applies: bool = False) -> None:
    """Raise StoreError 422 for parameters that do not fit the verb; `applies` marks a patch as an apply.

    The store checks those of lists and watches.
    """
    kind = _OPTIONS.get(verb)
    if kind is None:
        return
    if parameters.dry_run not in ("", ALL):
        raise _unsupported(kind, "dryRun", parameters.dry_run, (ALL,))
    if kind == "DeleteOptions":
        check_deletion(parameters.delete or {})
        return
    validation = parameters.field_validation
    if validation not in _FIELD_VALIDATIONS:
        raise _unsupported(kind, "fieldValidation", validation, _FIELD_VALIDATIONS)
    manager = parameters.field_manager
    if len(manager) > _MOST_OF_A_MANAGER:
        problem = f"Too long: may not be more than {_MOST_OF_A_MANAGER} bytes"
        raise invalid_options(kind, "fieldManager", problem, "FieldValueTooLong")
    if not manager.isprintable():
        problem = f"Invalid value: {shown(manager)}: should only contain printable characters"
        raise invalid_options(kind, "fieldManager", problem, "FieldValueInvalid")
    if kind != "PatchOptions":
        return
    if applies and not manager:
        raise invalid_options(kind, "fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
    if not applies and parameters.force is not None:
        raise invalid_options(kind, "force", "may not be specified for non-apply patch")


def check_deletion(delete: Raw) -> None:
    """Raise StoreError 422 for DeleteOptions with contradictions or invalid values."""
    policy, dry_run = delete.get("propagationPolicy"), delete.get("dryRun")
    if policy and delete.get("orphanDependents") is not None:
        problem = "Invalid value: orphanDependents and deletionPropagation cannot be both set"
        raise invalid_options("DeleteOptions", "propagationPolicy", problem, "FieldValueInvalid")
    if policy and policy not in _PROPAGATIONS:
        raise _unsupported("DeleteOptions", "propagationPolicy", policy, _PROPAGATIONS)
    if isinstance(dry_run, list) and (mistaken := dry_run_of(dry_run)) not in ("", ALL):
        raise _unsupported("DeleteOptions", "dryRun", mistaken, (ALL,))


def _unsupported(kind: str, field: str, value: object, supported: Iterable[str]) -> StoreError:
    listed = ", ".join(f'"{one}"' for one in supported if one)
    problem = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return invalid_options(kind, field, problem, "FieldValueNotSupported")


def dry_run_of(values: Iterable[Any]) -> Any:
    """Return the first value of `dryRun` that is not `ALL`; otherwise `ALL`, or "" if there are no values."""
    found = ""
    for value in values:
        if value != ALL:
            return value
        found = ALL
    return found


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("-") if text[:1] == "-" else text.removeprefix("+")
    if not digits.isascii() or not digits.isdigit():
        raise bad_request(f"{name}: {shown(text)} is not a whole number")
    if len(digits) > 19 or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f"{name}: {shown(text)} is not a whole number of 64 bits")
    return int(text)
