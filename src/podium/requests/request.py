"""One request to the API server, and its answer: what HTTP carries, without HTTP."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.requests.options import Binding, binding_body
from podium.store.errors import StoreError
from podium.store.patches.made_patch import plain_patch
from podium.store.patches.patching import PatchType
from podium.store.reads.listing import ListOptions, Page
from podium.store.reads.watch import Watch
from podium.store.stored import Stored
from podium.store.stored_objects import EVERYTHING

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
FieldValidation = Literal["", "Ignore", "Warn", "Strict"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks the API server for.

    `kind` is what the store calls the kind, such as Pod. `key` names the object (`namespace/name`, or the name alone),
    `namespace` the objects of a collection, "" for those of all namespaces, or where the `body` says. The body is the
    wire form of what HTTP would carry: an object, a patch of `patch_type`, a Binding, an Eviction, or DeleteOptions,
    and preconditions stand in it where Kubernetes has them: `metadata.uid` and `metadata.resourceVersion` of objects
    and patches, `preconditions` of DeleteOptions. In the place of a body there may be a `Binding`, or a `MadePatch`,
    which are taken as they are; `written_body` has them in the wire form. `options` choose what is listed, watched, or
    deleted together.

    `dry_run` makes the answer and leaves no trace. `field_validation` says what becomes of fields that there are not.
    `api_version` is that in which the objects are asked for and given, "" for the one that is stored.
    `reading` is the typed reading of the body, where who asks has made it: the answer is the same without it.
    `field_manager` is whose fields those are that are written, "" where nobody keeps account of that; `force` lets an
    apply patch take fields from others. `user` is who asks, "" where nobody knows.
    Source: apimachinery (pkg/apis/meta/v1/types.go), apiserver (pkg/endpoints/handlers).
    """

    verb: Verb
    kind: str
    key: str = ""
    namespace: str = ""
    subresource: str = ""
    body: Any = None
    patch_type: PatchType = "merge"
    options: ListOptions = EVERYTHING
    dry_run: bool = False
    field_validation: FieldValidation = ""
    api_version: str = ""
    field_manager: str = ""
    force: bool = False
    user: str = ""
    reading: Kubernetes | None = None

    @property
    def written_body(self) -> Any:
        """The body in the wire form."""
        body = self.body
        return binding_body(self.key, body) if isinstance(body, Binding) else plain_patch(body)


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server answers: an object or a Status, a page of a list, a watch, or an error.

    `code` is that of HTTP. `stored` is what has the encoded bytes of `object`, where it is one that is stored.
    `warnings` are for people, one header each.
    """

    code: int = 200
    object: Raw | None = None
    stored: Stored | None = None
    page: Page | None = None
    watch: Watch | None = None
    error: StoreError | None = None
    warnings: tuple[str, ...] = ()

    def objects(self) -> list[Raw]:
        """The objects of a list."""
        if self.page is not None:
            return [stored.raw for stored in self.page.items]
        return list((self.object or {}).get("items", ()))

    def to_dict(self) -> Raw:
        """The body as the API gives it. Raises ValueError for a watch, which has no end."""
        if self.error is not None:
            return self.error.to_dict()
        if self.page is not None:
            return self.page.to_dict()
        if self.object is None:
            raise ValueError("a watch has no body; its events are pulled")
        return self.object
