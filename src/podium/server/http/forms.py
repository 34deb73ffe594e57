"""Objects and lists in the form that a client has asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podium.api.meta import Raw
from podium.requests.wire.content_types import JSON
from podium.server.http.negotiation import Form
from podium.server.http.replies import Reply, of_object
from podium.store.api_resource import APIResource
from podium.store.encoding import encoded
from podium.store.reads.listing import Page

_META = "meta.k8s.io/v1"
# So many objects are written as JSON before others have their turn.
_AT_A_TIME = 500

MakeTable = Callable[[APIResource, list[Raw]], Raw]


def formed(raw: Raw, resource: APIResource, form: Form, make_table: MakeTable) -> Raw:
    """An object as it is to be shown; what is no object of the kind, such as a Status or a Scale, as it is."""
    if not form.kind or raw.get("kind") != resource.kind:
        return raw
    if not form.is_table:
        return metadata_of(raw)
    version = raw["metadata"].get("resourceVersion", "")
    table = make_table(resource, [raw])
    return {**table, "metadata": {"resourceVersion": version}} if version else table


async def list_reply(page: Page, form: Form, make_table: MakeTable) -> Reply:
    """A page of a list; a long one is put together little by little."""
    head = page.head()
    if form.is_table:
        table = make_table(page.selector.resource, [stored.raw for stored in page.items])
        return of_object({**table, "metadata": head["metadata"]}, content_type=form.header)
    if form.kind:
        items = [metadata_of(stored.raw) for stored in page.items]
        head |= {"kind": "PartialObjectMetadataList", "apiVersion": _META}
        return of_object({**head, "items": items}, content_type=form.header)
    if form.content_type != JSON:
        return of_object({**head, "items": [stored.raw for stored in page.items]}, content_type=form.header)
    pieces = [encoded(head)[:-1] + b',"items":[']
    for index, stored in enumerate(page.items):
        if index:
            pieces.append(b",")
            if index % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        pieces.append(stored.encoded)
    pieces.append(b"]}")
    return Reply(pieces=pieces, content_type=form.header)


def metadata_of(raw: Raw) -> Raw:
    """An object without all but its metadata (meta/v1 PartialObjectMetadata)."""
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": raw["metadata"]}
