"""The syntax of names, label keys and label values.

Each function returns the problem, or None for valid text; the rules are those of apimachinery (pkg/util/validation) and
RFC 1123. Results are cached, since a cluster uses few names many times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address

from podium.api.errors import shown

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"

SUBDOMAIN = rf"(?![-.a-z0-9]{{254}}){_LABEL}(?:\.{_LABEL})*"
"""A pattern for most objects' names: RFC 1123 labels joined by dots, at most 253 characters."""

LABEL_NAME = rf"(?![-a-z0-9]{{64}}){_LABEL}"
"""A pattern for one RFC 1123 label, at most 63 characters."""

_SUBDOMAIN = re.compile(SUBDOMAIN, re.ASCII)
_LABEL_NAME = re.compile(LABEL_NAME, re.ASCII)
_NAME_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_CACHE = 65_536
MAX_LABEL = 63
"""The maximum length of a label's name and value."""

NameRule = Callable[[str], str | None]
"""A function that returns the problem of a name in some context, None if it is valid."""


def _rule(is_valid: Callable[[str], object], problem: str) -> NameRule:
    """Return the cached rule of some names, which suggests lower case if case is the only problem."""

    @lru_cache(maxsize=_CACHE)
    def problem_of(name: str) -> str | None:
        if is_valid(name):
            return None
        small = name.lower()
        return f"{shown(name)} is not a valid {problem}{f'; did you mean {small}?' if is_valid(small) else ''}"

    return problem_of


subdomain_problem = _rule(
    _SUBDOMAIN.fullmatch,
    "name: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends and around every "
    "'.'",
)
"""Check most objects' names: RFC 1123 labels joined by dots, at most 253 characters."""

label_name_problem = _rule(
    _LABEL_NAME.fullmatch, "name: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"
)
"""Check names of namespaces and services: one RFC 1123 label, at most 63 characters."""

path_name_problem = _rule(
    lambda name: name not in (".", "..") and "/" not in name and "%" not in name,
    "name: it is not '.' or '..', and has no '/' or '%'",
)
"""Check names of roles and bindings: any valid path segment (api/validation/path)."""

label_value_problem = _rule(
    lambda value: not value or (len(value) <= MAX_LABEL and _NAME_PART.fullmatch(value)),
    "label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
)
"""Check values of labels and taints: empty, or at most 63 characters."""


def name_rule(group: str, kind: str) -> NameRule:
    """Return the rule for the names of a kind's objects."""
    if group == "rbac.authorization.k8s.io":
        return path_name_problem
    if kind == "IPAddress":
        return address_problem
    return label_name_problem if (group, kind) in (("", "Namespace"), ("", "Service")) else subdomain_problem


def address_problem(name: str) -> str | None:
    """Check names of IPAddresses: an address in its canonical form (validation.ValidateIPAddressName)."""
    try:
        if str(ip_address(name)) == name:
            return None
    except ValueError:
        pass
    return f"{shown(name)} is not a valid name: it is an IP address in canonical form"


@lru_cache(maxsize=_CACHE)
def label_key_problem(key: str) -> str | None:
    """Check keys of labels and taints, and names of resources: `[prefix/]name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and subdomain_problem(prefix) is not None:
        return f"{shown(key)} is not a valid key: the prefix before '/' must be a DNS name such as example.com"
    if len(name) <= MAX_LABEL and _NAME_PART.fullmatch(name):
        return None
    return (
        f"{shown(key)} is not a valid key: its name has at most 63 letters, digits, '-', '_' and '.', "
        "with a letter or digit at both ends, after an optional prefix such as example.com/"
    )
