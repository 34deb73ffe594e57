"""Taints of devices, and who tolerates them.

Source: k8s.io/dynamic-resource-allocation/resourceclaim/devicetoleration.go.
"""

from __future__ import annotations

from podium.api.devices import Device, DeviceTaint
from podium.api.resource_claims import DeviceToleration


def is_kept_away(device: Device, tolerations: tuple[DeviceToleration, ...]) -> bool:
    """Whether a taint of the device is not tolerated. Taints without an effect only tell."""
    return any(
        taint.effect != "None" and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in device.fields.taints
    )


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration accepts a taint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
