"""Which verb a method of HTTP is, on what.

Source: apiserver (pkg/endpoints/installer.go), which serves these methods and no others.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.requests.request import Verb
from podium.requests.wire.paths import Place
from podium.store.errors import StoreError

METHODS: Mapping[Verb, str] = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""The method of each verb."""

_ON_ONE: Mapping[str, Verb] = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_A_COLLECTION: Mapping[str, Verb] = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_A_SUBRESOURCE: Mapping[str, Verb] = {**_ON_ONE, "POST": "create"}


def verb_of(method: str, place: Place, *, watches: bool) -> Verb:
    """What a method asks for at a place; `watches` is whether the parameters ask for a watch.

    Raises StoreError 405 for a method that is not served there.
    """
    if place.subresource:
        verb = _ON_A_SUBRESOURCE.get(method)
    elif place.name:
        verb = _ON_ONE.get(method)
    else:
        verb = _ON_A_COLLECTION.get(method)
        if verb != "list" and place.resource.namespaced and not place.namespace:
            # Of all namespaces there are lists and watches alone.
            verb = None
    if verb is None or (place.watches and method != "GET"):
        raise not_allowed()
    if method == "GET" and (place.watches or watches) and not place.subresource:
        return "watch"
    return verb


def not_allowed() -> StoreError:
    """The method is not served where it was asked for."""
    return StoreError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
