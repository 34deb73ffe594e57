"""What HTTP brings, as a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.requests.request import FieldValidation, Request, Verb
from podium.requests.wire.parameters import ALL, Parameters, check_deletion, check_parameters
from podium.requests.wire.paths import Place, name_problem
from podium.requests.wire.verbs import verb_of
from podium.store.errors import bad_request
from podium.store.patches.patching import PatchType
from podium.store.reads.listing import ListOptions

# An older version that is taken too (pkg/registry/core/pod/storage, EvictionREST.AcceptsGroupVersion).
_OLDER = [["policy/v1beta1", "Eviction"]]
_DELETE_OPTIONS = "DeleteOptions"
_ABSENT = (None, "")
_NAMING_PARTS = ("binding", "eviction")


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what is meant where the parameters do not say it."""

    user: str = ""
    field_manager: str = ""
    field_validation: FieldValidation = ""


NOBODY = Asker()


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request but for its body."""

    verb: Verb
    place: Place
    parameters: Parameters


def asked(method: str, place: Place, parameters: Parameters) -> Asked:
    """What a method asks for at a place. Raises StoreError 400 and 405."""
    verb = verb_of(method, place, watches=parameters.watches)
    for what, name in (("Name", place.name), ("Namespace", place.namespace)):
        problem = name_problem(name)
        if problem:
            raise bad_request(f"{what} parameter invalid: {shown(name)}: {problem}")
    return Asked(verb=verb, place=place, parameters=parameters)


def request_of(asked: Asked, body: Any = None, patch_type: PatchType = "merge", asker: Asker = NOBODY) -> Request:
    """The request, with its decoded body: None for none.

    Raises StoreError 400 for an object of another kind than the path's, 422 as `check_parameters` does.
    """
    verb, place, parameters = asked.verb, asked.place, asked.parameters
    check_parameters(verb, parameters, applies=patch_type == "apply")
    if verb in ("create", "update"):
        body = _as_expected(place, body)
        _check_named(verb, place, body)
    elif patch_type == "apply":
        _check_version(place, body)
    elif verb in ("delete", "deletecollection"):
        body = _delete_options(body, parameters.delete)
    key, options = place.key, parameters.options
    if verb == "watch" and place.name:
        key, options = "", _of_one(options, place.name)
    return Request(
        verb=verb,
        kind=place.resource.name,
        key=key,
        namespace="" if key else place.namespace,
        subresource=place.subresource,
        body=body,
        patch_type=patch_type,
        options=options,
        dry_run=parameters.dry_run == ALL,
        field_validation=parameters.field_validation or asker.field_validation,
        field_manager=parameters.field_manager or asker.field_manager,
        force=bool(parameters.force),
        api_version="" if place.is_stored_version else place.resource.api_version,
        user=asker.user,
    )


def _expected(place: Place) -> tuple[str, str]:
    """The version and kind of the objects that go to a place."""
    resource = place.resource
    part = resource.subresource(place.subresource) if place.subresource else None
    return (part and part.api_version) or resource.api_version, (part and part.kind) or resource.kind


def _check_named(verb: Verb, place: Place, body: Raw) -> None:
    """Raise StoreError 400 for an object without its name where that is asked for beside the path (rest.go).

    What is done to a pod by the name in the path, such as its eviction, says that name too.
    """
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata.get("name"):
        return
    if verb == "update":
        problem = f"the name of the object ({place.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(problem)
    if place.subresource in _NAMING_PARTS:
        raise bad_request(f"name in URL does not match name in {_expected(place)[1]} object")


def _check_version(place: Place, body: Any) -> None:
    """Raise StoreError 400 for a part of an object, to be applied, in another version than the path's."""
    version, _ = _expected(place)
    given = body.get("apiVersion") if isinstance(body, dict) else None
    if given in _ABSENT or not body.get("kind"):
        missing = "Kind" if given not in _ABSENT else "apiVersion"
        raise bad_request(f"Object '{missing}' is missing in the apply patch; expected: {version}")
    if given != version:
        problem = f"Incorrect version specified in apply patch. Specified patch version: {given}, expected: {version}"
        raise bad_request(problem)


def _as_expected(place: Place, body: Any) -> Raw:
    """The object of the body, if it is one of those that go there; what it leaves open about that is filled in."""
    version, kind = _expected(place)
    if not isinstance(body, dict):
        raise bad_request(f"the body of the request is {shown(body)}, and a {kind} is an object")
    given_version, given_kind = body.get("apiVersion"), body.get("kind")
    if given_version == version and given_kind == kind:
        return body
    if (given_version in _ABSENT or given_kind in _ABSENT) and place.resource.is_custom:
        raise bad_request(f"Object '{'apiVersion' if given_kind else 'Kind'}' is missing; it is {version} {kind}")
    if given_kind not in (*_ABSENT, kind):
        raise bad_request(f"{shown(given_kind)} in version {shown(given_version)} cannot be handled as a {kind}")
    if given_version not in (*_ABSENT, version) and [given_version, kind] not in _OLDER:
        problem = f"the API version in the data ({shown(given_version)}) does not match the expected API version"
        raise bad_request(f"{problem} ({version})")
    return {**body, "apiVersion": version, "kind": kind}


def _delete_options(body: Any, said: Raw | None) -> Any:
    """The DeleteOptions of the body, or where there is none those of the query."""
    if body is None:
        return said
    if not isinstance(body, dict):
        raise bad_request(f"the body of the request is {shown(body)}, and {_DELETE_OPTIONS} are an object")
    if body.get("kind") not in (None, "", _DELETE_OPTIONS):
        raise bad_request(f"{shown(body['kind'])} cannot be handled as {_DELETE_OPTIONS}")
    check_deletion(body)
    return body


def _of_one(options: ListOptions, name: str) -> ListOptions:
    """The options of a watch of one object, which is one of those with its name."""
    selector = f"metadata.name={name}"
    if options.field_selector not in ("", selector):
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return replace(options, field_selector=selector)
