"""A run beside an earlier one: the ratios of what both measured."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.app.bench.measurement import Measurement, Run


class Ratios(msgspec.Struct, frozen=True, kw_only=True):
    """This run's figures over those of an earlier one; None where one of them has none."""

    pods_per_second: float | None
    operations_per_pod: float | None
    peak_memory_mib: float | None


def ratios_to(earlier: Run, measurements: Iterable[Measurement]) -> list[Ratios | None]:
    """The ratios of each measurement; None where the earlier run has not measured the same."""
    then = {measurement.subject: measurement for measurement in earlier.measurements}
    return [_ratios(then.get(measurement.subject), measurement) for measurement in measurements]


def _ratios(then: Measurement | None, now: Measurement) -> Ratios | None:
    if then is None:
        return None
    return Ratios(
        pods_per_second=_ratio(then.pods_per_second, now.pods_per_second),
        operations_per_pod=_ratio(then.operations_per_pod, now.operations_per_pod),
        peak_memory_mib=_ratio(then.peak_memory_mib, now.peak_memory_mib),
    )


def _ratio(then: float | None, now: float | None) -> float | None:
    return round(now / then, 2) if then and now is not None else None
