"""The ways to patch an object, and what the result must be like."""

from __future__ import annotations

from typing import Any, Literal

from podium.api.errors import shown
from podium.api.input.yaml import MAX_DEPTH
from podium.api.meta import Raw
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError, bad_request
from podium.store.patches.json_patch import json_patch
from podium.store.patches.made_patch import MadePatch, plain_patch
from podium.store.patches.merge_keys import schema_of
from podium.store.patches.merge_patch import merge_patch
from podium.store.patches.nulls import check_depth, without_nulls
from podium.store.patches.strategic_patch import strategic_patch

PatchType = Literal["json", "merge", "strategic", "apply"]
"""`application/json-patch+json`, `application/merge-patch+json`, `application/strategic-merge-patch+json` and
`application/apply-patch+yaml`; what is applied is no change, but a part of the object (`podium.store.ownership`)."""


def patched(resource: APIResource, raw: Raw, patch: Any, type_: PatchType, section: str = "") -> Raw:
    """The object with the patch applied, which is not changed; nulls in it mean that there is nothing.

    `section` says that of the result one field alone will be taken, such as `status`.

    Raises StoreError: 400 for what is no patch of that type or names another object, 413 and 422 as `json_patch` does,
    and 415 for a strategic merge patch of a custom resource, whose merge keys nobody knows.
    """
    if isinstance(patch, MadePatch):
        if patch.before is raw and section == "status":
            return {**raw, section: patch.after}
        patch = plain_patch(patch)
    if type_ == "apply":
        raise StoreError(415, "UnsupportedMediaType", "this is changed by patches, and not applied")
    if type_ == "strategic" and resource.is_custom:
        problem = f"{resource.kind} takes JSON patches and merge patches, no strategic merge patches"
        raise StoreError(415, "UnsupportedMediaType", problem)
    try:
        if type_ == "json":
            result = json_patch(raw, patch)
            check_depth(result, MAX_DEPTH)
        else:
            # What comes of merging is no deeper than the deeper of both.
            check_depth(patch, MAX_DEPTH)
            merges = type_ == "merge"
            result = merge_patch(raw, patch) if merges else strategic_patch(raw, patch, schema_of(resource.kind))
        if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
            raise bad_request("the patch leaves no object with metadata")
        result = without_nulls(result, raw, section)
    except RecursionError:
        raise bad_request(f"nested too deep; at most {MAX_DEPTH} levels are taken") from None
    _check_identity(raw, result)
    return result


def _check_identity(before: Raw, after: Raw) -> None:
    for field in ("apiVersion", "kind"):
        if after.get(field) != before.get(field):
            raise bad_request(f"{field} is {shown(before.get(field))}, and a patch cannot change it")
    for field in ("name", "namespace"):
        if after["metadata"].get(field) != before["metadata"].get(field):
            raise bad_request(f"metadata.{field} is {shown(before['metadata'].get(field))}; a patch cannot change it")
