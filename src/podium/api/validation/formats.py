"""Text formats of kube-apiserver (apimachinery, pkg/util/validation).

Each function returns the problem, which quotes the text, or None for valid text.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from podium.api.errors import shown
from podium.api.names import subdomain_problem

MAX_PORT = 65_535
MAX_ID = 2**31 - 1
"""The maximum user or group id."""

_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_MAX_PORT_NAME = 15
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_MAX_CONFIG_KEY = 253
_HEADER = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_SEARCH = re.compile(r"[a-z0-9_](?:[-_a-z0-9]*[a-z0-9_])?(?:\.[a-z0-9_](?:[-_a-z0-9]*[a-z0-9_])?)*", re.ASCII)
_SYSCTL = re.compile(r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?", re.ASCII)
_MAX_MODE = 0o777
_MAX_DRIVER = 63
_CACHE = 4_096


@lru_cache(maxsize=_CACHE)
def ip_problem(text: str) -> str | None:
    """Check an IPv4 or IPv6 address; leading zeros in IPv4 are accepted, as by kube-apiserver."""
    plain = ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in text.split("."))
    try:
        ipaddress.ip_address(plain if ":" not in text else text)
    except ValueError:
        right = False
    else:
        right = "%" not in text
    return None if right else f"{shown(text)}: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


@lru_cache(maxsize=_CACHE)
def cidr_problem(text: str) -> str | None:
    """Check a CIDR such as 10.9.8.0/24."""
    address, slash, length = text.partition("/")
    most = 128 if ":" in address else 32
    if slash and ip_problem(address) is None and length.isascii() and length.isdigit() and int(length[:4]) <= most:
        return None
    return f"{shown(text)}: must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


@lru_cache(maxsize=_CACHE)
def port_name_problem(text: str) -> str | None:
    """Check the name of a port (RFC 6335)."""
    if len(text) <= _MAX_PORT_NAME and _PORT_NAME.fullmatch(text):
        return None
    return (
        f"{shown(text)}: must be at most 15 lower-case letters, digits and single '-', at least one letter, "
        "with a letter or digit at both ends"
    )


def port_problem(number: int) -> str | None:
    """Check a port number."""
    return None if 1 <= number <= MAX_PORT else f"{number}: must be between 1 and {MAX_PORT}, inclusive"


@lru_cache(maxsize=_CACHE)
def environment_name_problem(text: str) -> str | None:
    """Check the name of an environment variable: printable ASCII without `=` (IsRelaxedEnvVarName)."""
    if text.isascii() and text.isprintable() and "=" not in text:
        return None
    return f"{shown(text)}: a valid environment variable name must consist only of printable ASCII characters but '='"


@lru_cache(maxsize=_CACHE)
def config_key_problem(text: str) -> str | None:
    """Check a key of a ConfigMap or a Secret."""
    if len(text) <= _MAX_CONFIG_KEY and _CONFIG_KEY.fullmatch(text) and text not in (".", "..") and text[:2] != "..":
        return None
    return f"{shown(text)}: a valid config key must consist of alphanumeric characters, '-', '_' or '.'"


def header_problem(text: str) -> str | None:
    """Check the name of an HTTP header."""
    return None if _HEADER.fullmatch(text) else f"{shown(text)}: must consist of alphanumeric characters or '-'"


def search_domain_problem(text: str) -> str | None:
    """Check a search domain: a DNS name that may have underscores, or a single dot."""
    name = text.removesuffix(".")
    if text == "." or (len(name) <= _MAX_CONFIG_KEY and _SEARCH.fullmatch(name)):
        return None
    return f"{shown(text)}: must be a DNS name of lower-case letters, digits, '-', '_' and '.'"


def backsteps_problem(path: str) -> str | None:
    """Check that a path has no segment `..`."""
    return f"{shown(path)}: must not contain '..'" if ".." in path.split("/") else None


def descending_problem(path: str) -> str | None:
    """Check that a path is relative and has no segment `..`."""
    return f"{shown(path)}: must be a relative path" if path.startswith("/") else backsteps_problem(path)


def local_path_problem(path: str) -> str | None:
    """Check that a path is relative, has no segment `..`, and does not start with `..`."""
    problem = descending_problem(path)
    if problem is None and path.startswith(".."):
        return f"{shown(path)}: must not start with '..'"
    return problem


def id_problem(number: int) -> str | None:
    """Check a user or group id."""
    return None if 0 <= number <= MAX_ID else f"{number}: must be between 0 and {MAX_ID}, inclusive"


def mode_problem(number: int) -> str | None:
    """Check the permissions of a file."""
    within = 0 <= number <= _MAX_MODE
    return None if within else f"{number}: must be a number between 0 and 0777 (octal), both inclusive"


def sysctl_problem(text: str) -> str | None:
    """Check the name of a kernel parameter."""
    if len(text) <= _MAX_CONFIG_KEY and _SYSCTL.fullmatch(text):
        return None
    return f"{shown(text)}: must be words of lower-case letters, digits, '-' and '_', joined by '.' or '/'"


def driver_problem(text: str) -> str | None:
    """Check a driver's name, which is a domain name (ValidateCSIDriverName)."""
    if len(text) > _MAX_DRIVER:
        return f"{shown(text)}: must be no more than {_MAX_DRIVER} characters"
    return subdomain_problem(text.lower())
