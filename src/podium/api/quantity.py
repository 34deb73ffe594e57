"""Quantities: amounts such as "100m", "1Gi" and 2e3, read exactly.

The rules are those of apimachinery's resource.Quantity (staging/src/k8s.io/apimachinery/pkg/api/resource),
with two caps of our own, on length and exponent, so that no text costs more than a few microseconds to read.
"""

from __future__ import annotations

import math
from functools import lru_cache

from podium.api.errors import shown
from podium.api.resources import CPU, is_bytes

PLAIN_QUANTITY = r"^[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[num]|[kMGTPE]|[KMGTPE]i)?\Z"
"""What most quantities look like, as a pattern: a text that it matches is one that `parse_quantity` reads."""

_NANO = 10**9
_MAX_NANO = (2**63 - 1) * _NANO
_MAX_LENGTH = 64
_MAX_EXPONENT = 30
_DIGITS = frozenset("0123456789")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse_quantity(value: str | int | float) -> int:
    """The amount in nano units, rounded away from zero to whole ones and saturating at 2**63 - 1 units.

    Text is a number and a suffix: n u m k M G T P E (powers of ten), Ki Mi Gi Ti Pi Ei (powers of two), or an
    exponent such as e3. Raises ValueError with the reason; booleans, NaN and infinities are no quantities.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool):
        raise ValueError(f'{shown(value)} is no quantity; write a number such as 2, or text such as "500m"')
    if isinstance(value, int):
        if abs(value) >= 10**_MAX_LENGTH:
            raise ValueError(f"a quantity has at most {_MAX_LENGTH} characters")
        return _saturated(value < 0, abs(value) * _NANO)
    if not math.isfinite(value):
        raise ValueError(f'{shown(value)} is no quantity; write a number such as 2, or text such as "500m"')
    return _parse_text(repr(value))


@lru_cache(maxsize=65_536)
def _parse_text(text: str) -> int:
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a quantity has at most {_MAX_LENGTH} characters, this one has {len(text)}")
    # apimachinery's decoder takes white space around a quantity, never inside it.
    body = text.strip(" \t\r\n")
    start = 1 if body[:1] in ("+", "-") else 0
    point = _skip_digits(body, start)
    end = _skip_digits(body, point + 1) if body[point : point + 1] == "." else point
    whole, fraction = body[start:point], body[point + 1 : end]
    if not whole and not fraction:
        raise ValueError(f'{shown(text)} is no quantity; write a number with a unit, such as "500m" or "1Gi"')
    mantissa = int(whole + fraction)
    suffix = body[end:]
    if suffix in _BINARY:
        nano = _ceil_divide(mantissa * _NANO << _BINARY[suffix], 10 ** len(fraction))
    else:
        power = _decimal_exponent(suffix, text) + 9 - len(fraction)
        nano = mantissa * 10**power if power >= 0 else _ceil_divide(mantissa, 10**-power)
    return _saturated(body[0] == "-", nano)


def _skip_digits(text: str, position: int) -> int:
    while position < len(text) and text[position] in _DIGITS:
        position += 1
    return position


def _decimal_exponent(suffix: str, text: str) -> int:
    """The power of ten of a decimal suffix or of an exponent such as e3 or E-2."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    sign = suffix[1:2] if suffix[1:2] in ("+", "-") else ""
    digits = suffix[1 + len(sign) :]
    if suffix[0] not in "eE" or not digits or _skip_digits(digits, 0) != len(digits):
        raise ValueError(
            f"{shown(text)} has the unit {shown(suffix)}; "
            "known units are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and exponents such as e3"
        )
    if int(digits) > _MAX_EXPONENT:
        raise ValueError(f"{shown(text)} has an exponent beyond {_MAX_EXPONENT}")
    return int(sign + digits)


def _ceil_divide(amount: int, divisor: int) -> int:
    return -(-amount // divisor)


def _saturated(negative: bool, nano: int) -> int:
    nano = min(nano, _MAX_NANO)
    return -nano if negative else nano


def _scaled(value: str | int | float, nano_each: int) -> int:
    nano = parse_quantity(value)
    return _ceil_divide(nano, nano_each) if nano >= 0 else nano // nano_each


def milli_value(value: str | int | float) -> int:
    """The amount in thousandths, rounded away from zero (Quantity.MilliValue). Raises ValueError."""
    return _milli_of_text(value) if isinstance(value, str) else _scaled(value, 10**6)


@lru_cache(maxsize=65_536)
def _milli_of_text(text: str) -> int:
    return _scaled(text, 10**6)


def whole_value(value: str | int | float) -> int:
    """The amount in whole units, rounded away from zero (Quantity.Value). Raises ValueError."""
    return _scaled(value, _NANO)


def format_quantity(amount: int, resource: str) -> str:
    """The amount as people write it, in a form that `parse_quantity` reads.

    CPU is given in milli and shown as "2" or "1500m". Bytes are shown in the largest binary unit that they
    fill, with up to two decimals: "1.5Gi"; exact where two decimals suffice, else rounded. All else is a
    plain number.
    """
    if resource == CPU:
        return str(amount // 1_000) if amount % 1_000 == 0 else f"{amount}m"
    if not is_bytes(resource) or abs(amount) < 1_024:
        return str(amount)
    sign = "-" if amount < 0 else ""
    unit, shift = next((unit, shift) for unit, shift in reversed(_BINARY.items()) if abs(amount) >> shift)
    hundredths = (abs(amount) * 100 + (1 << shift - 1)) >> shift
    decimals = f"{hundredths % 100:02}".rstrip("0")
    return f"{sign}{hundredths // 100}{'.' if decimals else ''}{decimals}{unit}"
