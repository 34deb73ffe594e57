"""What ConfigMaps and Secrets hold (core/validation, ValidateConfigMap and ValidateSecret)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from podium.api.base64_text import bytes_of
from podium.api.validation import finding
from podium.api.validation.place import Place

ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
"""In a Secret that is a token, whose it is."""

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_MAX_BYTES = 1024 * 1024


def check_config_map(config_map: Place) -> None:
    """The keys of the text and of the bytes, none of them in both, and how much all of it takes."""
    text, encoded = config_map.text_mapping("data"), config_map.text_mapping("binaryData")
    _check_keys(config_map, "data", text)
    _check_keys(config_map, "binaryData", encoded)
    for key in sorted(text.keys() & encoded.keys()):
        config_map.child_or_empty("data").invalid(key, key, "duplicate of key present in binaryData")
    size = sum(len(value.encode()) for value in text.values()) + sum(len(_bytes(value)) for value in encoded.values())
    if size > _MAX_BYTES:
        config_map.report(finding.too_long("", _MAX_BYTES))


def check_secret(secret: Place) -> None:
    """The keys of the data, how much they take, and what a Secret of its type has."""
    data = secret.text_mapping("data")
    _check_keys(secret, "data", data)
    if sum(len(_bytes(value)) for value in data.values()) > _MAX_BYTES:
        secret.report(finding.too_long(secret.path("data"), _MAX_BYTES))
    check = _TYPES.get(secret.text("type"))
    if check is not None:
        check(secret)


def _check_keys(place: Place, name: str, values: Mapping[str, str]) -> None:
    for key in values:
        if not _KEY.fullmatch(key) or key == "." or key.startswith(".."):
            rule = "a valid config key has at most 253 letters, digits, '-', '_' and '.', and does not begin with '..'"
            place.child_or_empty(name).invalid(key, key, rule)


def _bytes(encoded: str) -> bytes:
    try:
        return bytes_of(encoded)
    except ValueError:
        return b""


def _check_account(secret: Place) -> None:
    annotations = secret.child_or_empty("metadata").text_mapping("annotations")
    if not annotations.get(ACCOUNT_ANNOTATION):
        secret.child_or_empty("metadata").child_or_empty("annotations").required(ACCOUNT_ANNOTATION)


def _check_basic(secret: Place) -> None:
    data = secret.child_or_empty("data")
    if not data.has("username") and not data.has("password"):
        data.required("username")
        data.required("password")


def _check_settings(key: str) -> Callable[[Place], None]:
    """A rule for settings of Docker's, which are JSON."""

    def check(secret: Place) -> None:
        encoded = secret.text_mapping("data").get(key)
        if encoded is None:
            secret.child_or_empty("data").required(key)
            return
        try:
            json.loads(_bytes(encoded))
        except (ValueError, RecursionError):
            # What it is stays untold.
            secret.child_or_empty("data").invalid(key, "<secret contents redacted>", "is no JSON")

    return check


def _check_having(*keys: str) -> Callable[[Place], None]:
    """A rule for Secrets that have these."""

    def check(secret: Place) -> None:
        data = secret.child_or_empty("data")
        for key in keys:
            if not data.has(key):
                data.required(key)

    return check


_TYPES: Mapping[str, Callable[[Place], None]] = {
    "kubernetes.io/basic-auth": _check_basic,
    "kubernetes.io/dockercfg": _check_settings(".dockercfg"),
    "kubernetes.io/dockerconfigjson": _check_settings(".dockerconfigjson"),
    "kubernetes.io/service-account-token": _check_account,
    "kubernetes.io/ssh-auth": _check_having("ssh-privatekey"),
    "kubernetes.io/tls": _check_having("tls.crt", "tls.key"),
}
