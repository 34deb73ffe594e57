"""The rules for the fields of each type, as text, and their interpreter.

    ContainerPort: name:port-name containerPort!:port hostPort:port protocol:SCTP|TCP|UDP hostIP:ip
    PodSpec: volumes#name @containers securityContext restartPolicy:Always|OnFailure|Never* nodeSelector:labels

Types of the catalogue (`podium.api.schemas`) with the same rules, and their checks in order. The objects in a field,
also those in a list or a map, are checked by the rules of their type.

    !         the field is required
    +         an absent object is checked like an empty one
    :rule     the value, or each text in a list: alternatives, a range, or a rule of `FORMATS` or `_CONTENTS`;
              a range without a minimum limits the length of a list
    ::format  the text, "" if it is absent
    #name     the items of the list have distinct names, which are DNS labels
    ##field   the items of the list have distinct values of the field; without a field, the texts are distinct
    @check    a function with `check` for what concerns several fields
    =a|b      exactly one of the fields is set; ^a|b: kube-apiserver calls it invalid, not required, if none is;
              an empty text or list counts as unset, but for the field a!
    *         Podium relies on the rule: it refuses objects from a cluster, too, if they break it

Such objects are refused at their first problem (`check_usable`), by a check with the words of the report.
Podium's own limits of size apply there alone. All other rules and all messages are kube-apiserver's, and find every
problem (`check_type`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from podium.api import checks
from podium.api.errors import InputError, shown
from podium.api.names import label_key_problem, label_name_problem, label_value_problem, subdomain_problem
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, fields_of
from podium.api.validation import amounts
from podium.api.validation.findings import Place

Check = Callable[[Place], None]

_TOKEN = re.compile(
    r"(?:@(?P<check>\w+)|(?P<lack>[=^])(?P<one>[\w|!]+)|(?P<field>\w+)(?P<presence>[!+]?)(?::(?P<absent>:?)(?P<rule>[^*#]+))?(?P<named>#name)?(?:##(?P<distinct>\w*))?)\*?"
)
_RULES: dict[str, list[str]] = {}
_LIMITS: dict[str, list[str]] = {}
_CHECKS: dict[str, Check] = {}
# The details of findings for missing fields.
_MISSING = {
    "CustomResourceDefinitionSpec.versions": "must have at least one version",
    "PodOS.name": "cannot be empty",
    "accessModes": "at least 1 access mode is required",
    "exitCodes": "must be specified",
    "pathType": "pathType must be specified",
    "nodeSelectorTerms": "must have at least one node selector term",
    "topologyKey": "can not be empty",
}


def declare(rules: str, limits: str = "") -> None:
    """Add rules to those of their types, and Podium's limits in the same notation."""
    for text, table in ((rules, _RULES), (limits, _LIMITS)):
        for line in text.replace("\n ", "").splitlines():
            names, _, checks = line.partition(":")
            for name in names.split():
                table.setdefault(name, []).extend(checks.split())


def check(function: Check) -> Check:
    """Make the function known in rules, by its name without underscore."""
    name = function.__name__.removeprefix("_")
    if name in _CHECKS:
        raise AssertionError(f"there are two checks {name}")
    _CHECKS[name] = function
    return function


def has_rules(type_: str) -> bool:
    """Return whether there are rules for a type."""
    return type_ in _RULES


def fields_with_rules(type_: str) -> list[str]:
    """Return the fields of a type in the order of its rules."""
    return [re.split(r"\W", token)[0] for token in _RULES[type_]]


def check_type(place: Place, type_: str) -> None:
    """Report what breaks kube-apiserver's rules for a type."""
    _apply(_compiled(type_, False), place)


def check_usable(place: Place, type_: str, field: str = "") -> None:
    """Raise InputError for the first value of a type that Podium cannot process.

    With a ``field`` the others are known to be right.
    """
    rules = _compiled(type_, True)
    _apply([rule for rule in rules if rule.field in ("", field)] if field else rules, place)


class _Rule(NamedTuple):
    """A check, and the field that it concerns ("" for several); ``is_always_made``: also without the field."""

    field: str
    check: Check
    is_always_made: bool


def _apply(rules: Sequence[_Rule], place: Place) -> None:
    value = place.value
    for field, check_place, is_always_made in rules:
        if is_always_made or field in value:
            check_place(place)


@cache
def _compiled(type_: str, is_usability: bool) -> tuple[_Rule, ...]:
    """Return the rules for a type. Raises AssertionError if none are declared."""
    if type_ not in _RULES and type_ not in _LIMITS:
        raise AssertionError(f"there are no rules for the type {type_}")
    tokens = [(token, not is_usability or token.endswith("*")) for token in _RULES.get(type_, ())]
    if is_usability:
        # Values come before the objects beside them.
        limits = [(token, True) for token in _LIMITS.get(type_, ())]
        tokens = [*(token for token in tokens if token[1]), *limits, *(token for token in tokens if not token[1])]
    return tuple(rule for token, applies in tokens for rule in _compile(type_, token, applies, is_usability))


def _compile(type_: str, text: str, applies: bool, is_usability: bool) -> Iterator[_Rule]:
    """Yield the rules of a token for a type; none if it does not apply, and nothing in the field has one."""
    token = _TOKEN.fullmatch(text)
    if token is None:
        raise AssertionError(f"the rule {text} of {type_} is malformed")
    if token["check"] or token["one"]:
        one = partial(_check_one, rule=token["one"] or "", is_required=token["lack"] == "=")
        own = _CHECKS[token["check"]] if token["check"] else one
        if applies:
            yield _Rule("", _refusing(own) if is_usability else own, True)
        return
    name, of_field, checked = token["field"], fields_of(type_)[token["field"]].type, None
    if token["rule"] is None:
        checked = _check_of_parts(name, of_field, token, is_usability)
    elif applies:
        checked = (_usability_check if is_usability else _value_check)(name, of_field, token)
    if token["presence"] == "!" and not is_usability:
        detail = _MISSING.get(f"{type_}.{name}") or _MISSING.get(name, "")
        required = partial(_check_required, name=name, detail=detail, may_be_empty=isinstance(of_field, Object))
        yield _Rule(name, required, True)
    if checked is not None:
        yield _Rule(name, checked, bool(token["presence"] or token["absent"]))
    if token["distinct"] is not None and not is_usability:
        yield _Rule(name, partial(_check_distinct, name=name, key=token["distinct"]), False)


def _check_required(place: Place, name: str, detail: str, may_be_empty: bool) -> None:
    if place.value.get(name) is None or not (place.value[name] or may_be_empty):
        place.required(name, detail)


def _check_one(place: Place, rule: str, is_required: bool) -> None:
    names = rule.replace("!", "").split("|")
    given = [name for name in names if place.value.get(name) not in ((None,) if f"{name}!" in rule else (None, "", []))]
    problem = f"exactly one of {', '.join(f'`{name}`' for name in names)} is required"
    if not given and is_required:
        place.required("", problem)
    elif len(given) != 1:
        place.invalid("", given, problem)


def _check_distinct(place: Place, name: str, key: str) -> None:
    report_repeats([one for one in place.objects(name) if one.value.get(key)] if key else place.texts(name), key)


def _refusing(reports: Check) -> Check:
    """Return a check that raises InputError for the first problem that another one reports."""

    def refuse(place: Place) -> None:
        reports(place)
        for found in place.findings:
            raise InputError(found.message, path=found.path)

    return refuse


def _check_of_parts(name: str, type_: Type, token: re.Match[str], is_usability: bool) -> Check | None:
    """Return the check of the objects in a field."""
    inner = type_.item if isinstance(type_, ListOf) else type_.value if isinstance(type_, MapOf) else type_
    known = isinstance(inner, Object) and (inner.name in _RULES or inner.name in _LIMITS)
    rules = _compiled(inner.name, is_usability) if known and isinstance(inner, Object) else ()
    are_named, is_absent_checked = token["named"] and not is_usability, token["presence"] == "+"
    if not rules and not are_named:
        return None

    def check_child(place: Place) -> None:
        child = place.child_or_empty(name) if is_absent_checked else place.child(name)
        if child is not None:
            _apply(rules, child)

    def check_entries(place: Place) -> None:
        names: set[str] = set()
        for part in place.objects(name):
            if are_named:
                check_own_name(part, names)
            _apply(rules, part)

    def check_values(place: Place) -> None:
        values = place.child_or_empty(name)
        for part in filter(None, map(values.child, values.value)):
            _apply(rules, part)

    return check_entries if isinstance(type_, ListOf) else check_values if isinstance(type_, MapOf) else check_child


def _value_check(name: str, type_: Type, token: re.Match[str]) -> Check:
    """Return the check of a field's value by kube-apiserver's rules."""
    rule, is_text, is_absent_checked = token["rule"], type_ in (Leaf("str"), Leaf("time")), bool(token["absent"])
    if "|" in rule:
        allowed = tuple(rule.split("|"))
        if isinstance(type_, ListOf):
            return lambda place: check_all(place, name, allowed)
        return lambda place: check_alternatives(place, name, allowed)
    if ".." in rule:
        least, most = (int(bound) if bound else None for bound in rule.split(".."))
        if isinstance(type_, ListOf | MapOf):
            return lambda place: place.check_number(name, most or 0)
        return lambda place: check_range(place, name, least, most)
    if rule in _CONTENTS:
        contents = _CONTENTS[rule]
        return lambda place: contents(place, name)
    problem = FORMATS[rule]

    def check_format(place: Place) -> None:
        value = place.text(name) if is_text else place.number(name) or 0
        if value or is_absent_checked:
            place.check(name, problem(value))

    def check_formats(place: Place) -> None:
        for part in place.texts(name):
            part.check("", problem(part.value))

    return check_formats if isinstance(type_, ListOf) else check_format


def _usability_check(name: str, type_: Type, token: re.Match[str]) -> Check:
    """Return the check of a field's value that raises InputError."""
    if (refuse := _REFUSALS.get(token["rule"])) is None:
        return _refusing(_value_check(name, type_, token))

    def check_value(place: Place) -> None:
        value = place.value.get(name)
        if value is not None:
            refuse(value, place.path(name))

    return check_value


def report_repeats(
    places: Iterable[Place], name: str = "", value_of: Callable[[Place], object] | None = None
) -> list[Place]:
    """Report the field of each place that repeats an earlier one's value; return the places, for further checks.

    Without a function for the value, it is the text of the field, or of the place itself.
    """
    seen: set[object] = set()
    for place in (places := list(places)):
        value: object = value_of(place) if value_of is not None else place.text(name) if name else place.value
        if value in seen:
            place.duplicate(name, value)
        seen.add(value)
    return places


def check_alternatives(place: Place, name: str, allowed: tuple[str, ...]) -> None:
    """Report a text that is set and not allowed."""
    value = place.value.get(name)
    if value is not None and value not in allowed and (value := place.text(name)):
        place.unsupported(name, value, allowed)


def check_all(place: Place, name: str, allowed: tuple[str, ...]) -> None:
    """Report each text of a list that is not allowed."""
    for part in place.texts(name):
        if part.value not in allowed:
            part.unsupported("", part.value, allowed)


def check_own_name(item: Place, names: set[str]) -> str:
    """Check that the name of a list item is not in `names`; add it and return it."""
    name = item.text("name")
    if not name:
        item.required("name")
    elif name in names:
        item.duplicate("name", name)
    else:
        item.check("name", label_name_problem(name))
    names.add(name)
    return name


def check_range(place: Place, name: str, least: int | None, most: int | None = None) -> None:
    """Report a number that is set and out of range."""
    number = place.number(name)
    if number is None or (number if least is None else least) <= number <= (number if most is None else most):
        return
    bounds = f"greater than or equal to {least}" if most is None else f"between {least} and {most}, inclusive"
    if least is None:
        bounds = f"less than or equal to {most}"
    place.invalid(name, number, f"must be {bounds}")


def check_port(place: Place, name: str) -> None:
    """Report an invalid port, by number or name; an absent one is 0."""
    value = place.value.get(name)
    if isinstance(value, str):
        place.check(name, port_name_problem(value))
    else:
        place.check(name, port_problem(place.number(name) or 0))


def check_labels(place: Place, name: str) -> None:
    """Report invalid labels, or equality requirements."""
    for key, value in place.text_mapping(name).items():
        problem = label_key_problem(key) or label_value_problem(value)
        if problem is not None:
            place.child_or_empty(name).check(key, problem)


def _check_share(place: Place, name: str, most_percent: int | None = 100) -> None:
    """Check a number of pods, or a percentage (ValidatePositiveIntOrPercent, IsNotMoreThan100Percent)."""
    value = place.value.get(name)
    if not isinstance(value, str):
        check_range(place, name, 0)
        return
    digits = value.removesuffix("%")
    if digits == value or not digits.isascii() or not digits.isdigit():
        place.invalid(name, value, "a valid percent string must be a numeric string followed by an ending '%'")
    elif most_percent is not None and int(digits[:18]) > most_percent:
        place.invalid(name, value, f"must not be greater than {most_percent}%")


_CONTENTS: Mapping[str, Callable[[Place, str], None]] = {
    "amounts": lambda place, name: amounts.check_amounts(place, name, None),
    "any-share": lambda place, name: _check_share(place, name, None),
    "container-amounts": lambda place, name: amounts.check_amounts(
        place, name, amounts.container_resource_problem, counts_pages=True
    ),
    "keyed-amounts": lambda place, name: amounts.check_amounts(place, name, label_key_problem),
    "labels": check_labels,
    "port-or-name": check_port,
    "share": _check_share,
    "size": lambda place, name: amounts.check_amount(place, name, "storage"),
}
_REFUSALS: Mapping[str, Callable[[Any, str], None]] = {
    "amount": checks.check_amount,
    "amounts": checks.check_amounts,
    "annotations": checks.check_annotations,
    "any-share": lambda value, path: checks.check_share(value, path, most_percent=None),
    "container-amounts": checks.check_amounts,
    "share": checks.check_share,
    "size": checks.check_amount,
    "time": checks.check_time,
}


Format = Callable[[Any], str | None]

MAX_PORT = 65_535
_MAX_NAME = 253
_MAX_DRIVER = 63
_MAX_ID = 2**31 - 1
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_CONFIG_KEY = re.compile(r"(?!\.\.|\.\Z)[-._a-zA-Z0-9]{1,253}", re.ASCII)
_DOMAIN_PATH = re.compile(r"[^/]+/[-A-Za-z0-9/._~%!$&'()*+,;=:]+", re.ASCII)
_FIELDS = r"(?:\.[A-Za-z_][A-Za-z0-9_-]*)+"
_HTTPS = re.compile(r"https://[^/?#@\s]+(?:/[^?#]*)?")
_HEADER = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_SEARCH = re.compile(r"[a-z0-9_](?:[-_a-z0-9]*[a-z0-9_])?(?:\.[a-z0-9_](?:[-_a-z0-9]*[a-z0-9_])?)*", re.ASCII)
_SYSCTL = re.compile(r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?", re.ASCII)
_VERSION = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def _format(is_right: Callable[[Any], object], detail: str) -> Format:
    """Return the format of values for which the function is true; the detail says what would be right."""

    @lru_cache(maxsize=4_096)
    def problem_of(value: Any) -> str | None:
        return None if is_right(value) else f"{shown(value)}: {detail}"

    return problem_of


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


def _is_canonical(cidr: str) -> bool:
    try:
        return str(ipaddress.ip_network(cidr)) == cidr
    except ValueError:
        return False


def _wildcard_problem(host: str) -> str | None:
    """Check a DNS name, which may begin with a wildcard."""
    if "*" in host and (not host.startswith("*.") or subdomain_problem(host[2:]) is not None):
        return f"{shown(host)}: a wildcard DNS name must start with '*.', followed by a valid DNS subdomain"
    return None if "*" in host else subdomain_problem(host)


def _is_search_domain(text: str) -> bool:
    """Return whether the text is a DNS name that may have underscores, or a single dot."""
    name = text.removesuffix(".")
    return text == "." or (len(name) <= _MAX_NAME and _SEARCH.fullmatch(name) is not None)


port_name_problem = _format(
    lambda text: len(text) <= 15 and _PORT_NAME.fullmatch(text),
    "must be at most 15 lower-case letters, digits and single '-', at least one letter, with a letter or digit at both "
    "ends",
)
port_problem = _format(range(1, MAX_PORT + 1).__contains__, f"must be between 1 and {MAX_PORT}, inclusive")
config_key_problem = _format(
    _CONFIG_KEY.fullmatch,
    "a valid config key has at most 253 letters, digits, '-', '_' and '.', and does not begin with '..'",
)
id_problem = _format(range(_MAX_ID + 1).__contains__, f"must be between 0 and {_MAX_ID}, inclusive")
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


def _group_version_problem(text: str) -> str | None:
    group, _, version = text.rpartition("/")
    return (subdomain_problem(group) if group else None) or FORMATS["version-name"](version)


def _service_path_problem(path: str) -> str | None:
    """Check the path of a webhook at a service (ValidateWebhookService)."""
    if not path.startswith("/"):
        return f"{shown(path)}: must start with a '/'"
    for index, segment in enumerate(path[1:].removesuffix("/").split("/") if path != "/" else ()):
        problem = subdomain_problem(segment) if segment else ""
        if problem is not None:
            detail = f": {problem.rpartition(': ')[2]}" if segment else " may not be empty"
            return f"{shown(path)}: segment[{index}]{detail}"
    return None


FORMATS: Mapping[str, Format] = {
    "absolute-path": _format(lambda path: path.startswith("/"), "must be an absolute path"),
    "canonical-cidr": _format(_is_canonical, "must be a CIDR in canonical form (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
    "cel-name": _format(lambda text: text.isascii() and text.isidentifier(), "name is not a valid CEL identifier"),
    "cidr": lambda text: _cidr_problem(text.strip()),
    "config-key": config_key_problem,
    "domain": _format(
        lambda text: "." in text and not subdomain_problem(text), "should be a lower-case domain with at least one dot"
    ),
    "domain-path": _format(
        lambda text: _DOMAIN_PATH.fullmatch(text) and subdomain_problem(text.partition("/")[0]) is None,
        'must be a domain-prefixed path (such as "acme.io/foo")',
    ),
    "driver": _driver_problem,
    # IsRelaxedEnvVarName.
    "environment-name": _format(
        lambda text: text.isascii() and text.isprintable() and "=" not in text,
        "a valid environment variable name must consist only of printable ASCII characters but '='",
    ),
    "extended-resource": _format(amounts.is_extended, "must be a valid extended resource name"),
    "field-path": _format(
        re.compile(_FIELDS, re.ASCII).fullmatch, "must be a simple json path of fields, such as .spec.replicas"
    ),
    "group-version": _group_version_problem,
    "header": _format(_HEADER.fullmatch, "must consist of alphanumeric characters or '-'"),
    "host": lambda text: (
        f"{shown(text)}: must be a DNS name, not an IP address" if _is_ip(text) else _wildcard_problem(text)
    ),
    "host-pattern": _wildcard_problem,
    "https-url": _format(_HTTPS.fullmatch, "must be https://host[/path], without user, query and fragment"),
    "id": id_problem,
    "ip": _format(_is_ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    "key": label_key_problem,
    "key-in-any-case": lambda text: label_key_problem(text.lower()),
    "label": label_name_problem,
    "label-in-any-case": lambda text: label_name_problem(text.lower()),
    "line": _format(lambda text: text.strip() and "\n" not in text.strip(), "must be one line that is not blank"),
    "local-path": _local_path_problem,
    "mode": _format(range(0o777 + 1).__contains__, "must be a number between 0 and 0777 (octal), both inclusive"),
    "no-path": _format(lambda text: "/" not in text, "must not contain '/'"),
    # kube-apiserver says 1, and accepts 0, which is that of an absent field.
    "partition": _format(range(256).__contains__, "must be between 1 and 255, inclusive"),
    "path-without-backsteps": _backsteps_problem,
    "port": port_problem,
    "port-name": port_name_problem,
    "positive": _format(lambda number: number > 0, "must be greater than zero"),
    "relative-path": descending_problem,
    "schedule": _format(
        lambda text: "TZ" not in text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    ),
    "service-path": _service_path_problem,
    "search-domain": _format(_is_search_domain, "must be a DNS name of lower-case letters, digits, '-', '_' and '.'"),
    "spec-path": _format(re.compile(rf"\.spec{_FIELDS}", re.ASCII).fullmatch, "should be a json path under .spec"),
    "status-path": _format(
        re.compile(rf"\.status{_FIELDS}", re.ASCII).fullmatch, "should be a json path under .status"
    ),
    "subdomain": subdomain_problem,
    "subdomain-in-any-case": lambda text: subdomain_problem(text.lower()),
    "subdomain-or-prefix": lambda text: subdomain_problem(text.removesuffix("-")),
    "subdomains": lambda text: next(filter(None, map(subdomain_problem, text.split("/"))), None),
    "sysctl": sysctl_problem,
    "unset": _format(lambda _: False, "needs to be unset"),
    "value": label_value_problem,
    "version-name": _format(_VERSION.fullmatch, "must be lower-case letters, digits and '-', a letter first"),
    "webhook-name": _format(
        lambda text: text.count(".") > 1 and not subdomain_problem(text), "must be a domain of at least three segments"
    ),
    "weight": _format(range(1, 101).__contains__, "must be in the range 1-100"),
}
"""The formats by their names in rules (`podium.api.validation.rules`)."""
