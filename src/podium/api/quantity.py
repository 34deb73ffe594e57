"""The names and categories of resources, and quantities: amounts such as "100m", "1Gi" and 2e3, parsed exactly.

The rules for names are those of pkg/apis/core/v1/helper/helpers.go, those for quantities apimachinery's
resource.Quantity (staging/src/k8s.io/apimachinery/pkg/api/resource), with additional limits on length and exponent, so
that every text is parsed within a few microseconds.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from podium.api.errors import shown

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

_HUGE_PAGES = "hugepages-"
_BYTES = frozenset((MEMORY, EPHEMERAL_STORAGE, "storage"))
_STANDARD = frozenset((CPU, PODS, *_BYTES))


def is_huge_pages(name: str) -> bool:
    """Return whether the resource is huge pages of some size, such as hugepages-2Mi."""
    return name.startswith(_HUGE_PAGES)


def is_bytes(name: str) -> bool:
    """Return whether amounts of the resource are bytes."""
    return name in _BYTES or is_huge_pages(name)


def is_standard(name: str) -> bool:
    """Return whether the resource is one of Kubernetes' own without a prefix."""
    return name in _STANDARD or is_huge_pages(name)


def is_extended(name: str) -> bool:
    """Return whether the resource is provided by device plugins, such as example.com/gpu."""
    prefix, slash, _ = name.partition("/")
    native = prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io")
    return bool(slash) and not native and not name.startswith("requests.")


def is_pod_level(name: str) -> bool:
    """Return whether a pod may request the resource at pod level."""
    return name in (CPU, MEMORY) or is_huge_pages(name)


PLAIN_QUANTITY = r"^[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[num]|[kMGTPE]|[KMGTPE]i)?\Z"
"""A pattern of most quantities: `parse_quantity` accepts every text that matches."""

_NANO = 10**9
_MAX_NANO = (2**63 - 1) * _NANO
_MAX_LENGTH = 64
_MAX_EXPONENT = 30
_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse_quantity(value: str | int | float) -> int:
    """Return the amount in nano units, rounded away from zero to integers and saturating at 2**63 - 1 units.

    Text is a number and a suffix: n u m k M G T P E (powers of ten), Ki Mi Gi Ti Pi Ei (powers of two), or an exponent
    such as e3. Raises ValueError with the reason; booleans, NaN and infinities are not quantities.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool):
        raise ValueError(f'{shown(value)} is not a quantity; write a number such as 2, or text such as "500m"')
    if isinstance(value, int):
        if abs(value) >= 10**_MAX_LENGTH:
            raise ValueError(f"a quantity has at most {_MAX_LENGTH} characters")
        return _saturated(value < 0, abs(value) * _NANO)
    if not math.isfinite(value):
        raise ValueError(f'{shown(value)} is not a quantity; write a number such as 2, or text such as "500m"')
    return _parse_text(repr(value))


@lru_cache(maxsize=65_536)
def _parse_text(text: str) -> int:
    """Return the amount in nano units. Raises ValueError."""
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a quantity has at most {_MAX_LENGTH} characters, this one has {len(text)}")
    # apimachinery's decoder accepts white space around a quantity, never inside it.
    found = _QUANTITY.fullmatch(text.strip(" \t\r\n"))
    sign, whole, fraction, suffix = ("", "", "", "") if found is None else found.groups(default="")
    if not whole and not fraction:
        raise ValueError(f'{shown(text)} is not a quantity; write a number with a unit, such as "500m" or "1Gi"')
    mantissa = int(whole + fraction)
    if suffix in _BINARY:
        nano = _ceil_divide(mantissa * _NANO << _BINARY[suffix], 10 ** len(fraction))
    else:
        power = _decimal_exponent(suffix, text) + 9 - len(fraction)
        nano = mantissa * 10**power if power >= 0 else _ceil_divide(mantissa, 10**-power)
    return _saturated(sign == "-", nano)


def _decimal_exponent(suffix: str, text: str) -> int:
    """Return the power of ten of a decimal suffix or of an exponent such as e3 or E-2."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise ValueError(
            f"{shown(text)} has the unit {shown(suffix)}; "
            "known units are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and exponents such as e3"
        )
    if abs(int(exponent[1])) > _MAX_EXPONENT:
        raise ValueError(f"{shown(text)} has an exponent beyond {_MAX_EXPONENT}")
    return int(exponent[1])


def _ceil_divide(amount: int, divisor: int) -> int:
    return -(-amount // divisor)


def _saturated(negative: bool, nano: int) -> int:
    nano = min(nano, _MAX_NANO)
    return -nano if negative else nano


def _scaled(value: str | int | float, nano_each: int) -> int:
    nano = parse_quantity(value)
    return _ceil_divide(nano, nano_each) if nano >= 0 else nano // nano_each


@lru_cache(maxsize=65_536, typed=True)
def milli_value(value: str | int | float) -> int:
    """Return the amount in thousandths, rounded away from zero (Quantity.MilliValue). Raises ValueError."""
    return _scaled(value, 10**6)


def whole_value(value: str | int | float) -> int:
    """Return the amount in whole units, rounded away from zero (Quantity.Value). Raises ValueError."""
    return _scaled(value, _NANO)


@lru_cache(maxsize=65_536, typed=True)
def canonical_quantity(value: str | int | float) -> str:
    """Return a quantity as Kubernetes writes it (CanonicalizeBytes): a whole number of the largest possible unit.

    The unit is of the same kind as before, except that binary ones show neither fractions nor less than 1024.
    """
    nano, power = parse_quantity(value), -9
    suffix = value.strip().lstrip("+-.0123456789") if isinstance(value, str) else ""
    if suffix in _BINARY and abs(nano) >= 1_024 * _NANO and nano % _NANO == 0:
        return exact_quantity(nano // _NANO, MEMORY)
    if not nano:
        return "0"
    while nano % 1_000 == 0 and power < 18:
        nano, power = nano // 1_000, power + 3
    if _EXPONENT.fullmatch(suffix):
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{next(unit for unit, exponent in _DECIMAL.items() if exponent == power)}"


def exact_quantity(amount: int, resource: str) -> str:
    """Return the amount as an exact quantity: cpu from milli, bytes in the largest binary unit that divides them."""
    if resource == CPU:
        return str(amount // 1_000) if amount % 1_000 == 0 else f"{amount}m"
    unit = ""
    if is_bytes(resource):
        for larger in _BINARY:
            if not amount or amount % 1_024:
                break
            amount, unit = amount // 1_024, larger
    return f"{amount}{unit}"


def format_quantity(amount: int, resource: str) -> str:
    """Return the amount in readable form, which `parse_quantity` accepts.

    CPU is given in milli and shown as "2" or "1500m". Bytes are shown in the largest binary unit that they fill, with
    up to two decimals: "1.5Gi"; exact if two decimals suffice, else rounded. Everything else is a plain number.
    """
    if not is_bytes(resource) or abs(amount) < 1_024:
        return exact_quantity(amount, resource)
    sign = "-" if amount < 0 else ""
    unit, shift = next((unit, shift) for unit, shift in reversed(_BINARY.items()) if abs(amount) >> shift)
    hundredths = (abs(amount) * 100 + (1 << shift - 1)) >> shift
    decimals = f"{hundredths % 100:02}".rstrip("0")
    return f"{sign}{hundredths // 100}{'.' if decimals else ''}{decimals}{unit}"
