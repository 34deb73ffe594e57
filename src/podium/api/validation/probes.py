"""How a container's health is found out, and what is done as it begins and ends (core/validation, validateHandler)."""

from __future__ import annotations

from podium.api.validation.formats import header_problem, port_name_problem, port_problem
from podium.api.validation.place import Place

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBE_HANDLERS = _HANDLERS[:4]
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")


def check_probes(container: Place, grace_seconds: int) -> None:
    """The three probes of a container."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.child(name)
        if probe is None:
            continue
        _check_handler(probe, _PROBE_HANDLERS, grace_seconds)
        probe.check_not_negative(*_COUNTS)
        seconds = probe.number("terminationGracePeriodSeconds")
        if name == "readinessProbe":
            if seconds is not None:
                detail = "must not be set for readinessProbes"
                probe.invalid("terminationGracePeriodSeconds", seconds, detail)
            continue
        if seconds is not None and seconds <= 0:
            probe.invalid("terminationGracePeriodSeconds", seconds, "must be greater than 0")
        successes = probe.number("successThreshold")
        if successes is not None and successes > 1:
            probe.invalid("successThreshold", successes, "must be 1")


def check_lifecycle(container: Place, grace_seconds: int) -> None:
    """What is done right after a container began, and before it ends."""
    lifecycle = container.child("lifecycle")
    if lifecycle is None:
        return
    for name in ("postStart", "preStop"):
        handler = lifecycle.child(name)
        if handler is not None:
            _check_handler(handler, _HANDLERS, grace_seconds)


def check_port(place: Place, name: str) -> None:
    """The number or the name of a port, which must be given."""
    value = place.value.get(name)
    if isinstance(value, str):
        place.check(name, port_name_problem(value))
    else:
        place.check(name, port_problem(place.number(name) or 0))


def _check_handler(place: Place, known: tuple[str, ...], grace_seconds: int) -> None:
    given = [name for name in known if place.has(name)]
    if not given:
        place.required("", "must specify a handler type")
        return
    for name in given[1:]:
        place.forbidden(name, "may not specify more than 1 handler type")
    action = place.child(given[0])
    if action is None:
        return
    match given[0]:
        case "exec":
            action.require("command")
        case "httpGet":
            _check_http(action)
        case "sleep":
            seconds = action.number("seconds") or 0
            if not 0 <= seconds <= grace_seconds:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
                place.invalid("sleep", seconds, detail)
        case _:
            check_port(action, "port")


def _check_http(action: Place) -> None:
    check_port(action, "port")
    action.check_one_of("scheme", _SCHEMES)
    for header in action.objects("httpHeaders"):
        header.check("name", header_problem(header.text("name")))
