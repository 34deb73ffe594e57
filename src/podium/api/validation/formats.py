"""Formats of texts and numbers in kube-apiserver's rules (apimachinery, pkg/util/validation).

Each format is a function that returns the problem, which quotes the value, or None for a valid value.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from podium.api.errors import shown
from podium.api.names import label_key_problem, label_name_problem, label_value_problem, subdomain_problem

Format = Callable[[Any], str | None]

MAX_PORT = 65_535
_MAX_PORT_NAME = 15
_MAX_NAME = 253
_MAX_DRIVER = 63
_MAX_ID = 2**31 - 1
_MAX_MODE = 0o777
_CACHE = 4_096
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_CONFIG_KEY = re.compile(r"(?!\.\.|\.\Z)[-._a-zA-Z0-9]{1,253}", re.ASCII)
_HEADER = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_SEARCH = re.compile(r"[a-z0-9_](?:[-_a-z0-9]*[a-z0-9_])?(?:\.[a-z0-9_](?:[-_a-z0-9]*[a-z0-9_])?)*", re.ASCII)
_SYSCTL = re.compile(r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?", re.ASCII)


def _format(is_right: Callable[[Any], object], detail: str) -> Format:
    """Return the format of values for which the function is true; the detail says what would be right."""

    @lru_cache(maxsize=_CACHE)
    def problem_of(value: Any) -> str | None:
        return None if is_right(value) else f"{shown(value)}: {detail}"

    return problem_of


def _between(least: int, most: int) -> Callable[[int], bool]:
    return lambda number: least <= number <= most


def _is_ip(text: str) -> bool:
    """Return whether the text is an IPv4 or IPv6 address; leading zeros in IPv4 are accepted, as by kube-apiserver."""
    plain = ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in text.split("."))
    try:
        ipaddress.ip_address(plain if ":" not in text else text)
    except ValueError:
        return False
    return "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    most = 128 if ":" in address else 32
    return bool(slash) and _is_ip(address) and length.isascii() and length.isdigit() and int(length[:4]) <= most


def _is_search_domain(text: str) -> bool:
    """Return whether the text is a DNS name that may have underscores, or a single dot."""
    name = text.removesuffix(".")
    return text == "." or (len(name) <= _MAX_NAME and _SEARCH.fullmatch(name) is not None)


port_name_problem = _format(
    lambda text: len(text) <= _MAX_PORT_NAME and _PORT_NAME.fullmatch(text),
    "must be at most 15 lower-case letters, digits and single '-', at least one letter, with a letter or digit at both "
    "ends",
)
port_problem = _format(_between(1, MAX_PORT), f"must be between 1 and {MAX_PORT}, inclusive")
config_key_problem = _format(
    _CONFIG_KEY.fullmatch,
    "a valid config key has at most 253 letters, digits, '-', '_' and '.', and does not begin with '..'",
)
id_problem = _format(_between(0, _MAX_ID), f"must be between 0 and {_MAX_ID}, inclusive")
sysctl_problem = _format(
    lambda text: len(text) <= _MAX_NAME and _SYSCTL.fullmatch(text),
    "must be words of lower-case letters, digits, '-' and '_', joined by '.' or '/'",
)
_backsteps_problem = _format(lambda path: ".." not in path.split("/"), "must not contain '..'")
_cidr_problem = _format(_is_cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def descending_problem(path: str) -> str | None:
    """Check that a path is relative and has no segment `..`."""
    return f"{shown(path)}: must be a relative path" if path.startswith("/") else _backsteps_problem(path)


def _local_path_problem(path: str) -> str | None:
    """Check that a path is relative, has no segment `..`, and does not start with `..`."""
    problem = descending_problem(path)
    return f"{shown(path)}: must not start with '..'" if problem is None and path.startswith("..") else problem


def _driver_problem(text: str) -> str | None:
    """Check a driver's name, which is a domain name (ValidateCSIDriverName)."""
    if len(text) > _MAX_DRIVER:
        return f"{shown(text)}: must be no more than {_MAX_DRIVER} characters"
    return subdomain_problem(text.lower())


FORMATS: Mapping[str, Format] = {
    "absolute-path": _format(lambda path: path.startswith("/"), "must be an absolute path"),
    "cidr": lambda text: _cidr_problem(text.strip()),
    "config-key": config_key_problem,
    "driver": _driver_problem,
    # IsRelaxedEnvVarName.
    "environment-name": _format(
        lambda text: text.isascii() and text.isprintable() and "=" not in text,
        "a valid environment variable name must consist only of printable ASCII characters but '='",
    ),
    "header": _format(_HEADER.fullmatch, "must consist of alphanumeric characters or '-'"),
    "id": id_problem,
    "ip": _format(_is_ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    "key": label_key_problem,
    "key-in-any-case": lambda text: label_key_problem(text.lower()),
    "label": label_name_problem,
    "lifecycle-mode": _format(("Persistent", "Ephemeral").__contains__, "must be Persistent or Ephemeral"),
    "local-path": _local_path_problem,
    "mode": _format(_between(0, _MAX_MODE), "must be a number between 0 and 0777 (octal), both inclusive"),
    # kube-apiserver says 1, and accepts 0, which is that of an absent field.
    "partition": _format(_between(0, 255), "must be between 1 and 255, inclusive"),
    "path-without-backsteps": _backsteps_problem,
    "port": port_problem,
    "port-name": port_name_problem,
    "positive": _format(lambda number: number > 0, "must be greater than zero"),
    "relative-path": descending_problem,
    "search-domain": _format(_is_search_domain, "must be a DNS name of lower-case letters, digits, '-', '_' and '.'"),
    "subdomain": subdomain_problem,
    "subdomain-in-any-case": lambda text: subdomain_problem(text.lower()),
    "subdomain-or-prefix": lambda text: subdomain_problem(text.removesuffix("-")),
    "sysctl": sysctl_problem,
    "value": label_value_problem,
    "weight": _format(_between(1, 100), "must be in the range 1-100"),
}
"""The formats by their names in rules (`podium.api.validation.rules`)."""
