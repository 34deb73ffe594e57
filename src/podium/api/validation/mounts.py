"""Where a container sees the volumes of its pod (core/validation, ValidateVolumeMounts and ValidateVolumeDevices)."""

from __future__ import annotations

from podium.api.validation.formats import backsteps_problem, descending_problem
from podium.api.validation.place import Place
from podium.api.validation.volumes import Volumes

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "IfPossible", "Enabled")


def check_mounts(container: Place, volumes: Volumes) -> None:
    """The volumes that a container mounts as files, and those that it has as devices."""
    mounts, devices = container.objects("volumeMounts"), container.objects("volumeDevices")
    device_names = {device.text("name") for device in devices}
    device_paths = {device.text("devicePath") for device in devices}
    paths: set[str] = set()
    for mount in mounts:
        name, path = mount.text("name"), mount.text("mountPath")
        mount.require("name", "mountPath")
        if name and name not in volumes:
            mount.not_found("name", name)
        if path in paths:
            mount.invalid("mountPath", path, "must be unique")
        paths.add(path)
        if name in device_names:
            mount.invalid("name", name, "must not already exist in volumeDevices")
        if path in device_paths:
            mount.invalid("mountPath", path, "must not already exist as a path in volumeDevices")
        _check_sub_path(mount, "image" in volumes.get(name, ()))
        _check_propagation(mount, container)
    _check_devices(devices, volumes)


def _check_sub_path(mount: Place, is_image: bool) -> None:
    for name in ("subPath", "subPathExpr"):
        path = mount.text(name)
        if path and is_image:
            mount.invalid(name, path, "not allowed in image volume sources")
        mount.check(name, descending_problem(path))
    if mount.text("subPath") and mount.text("subPathExpr"):
        mount.invalid("subPathExpr", mount.text("subPathExpr"), "subPathExpr and subPath are mutually exclusive")


def _check_propagation(mount: Place, container: Place) -> None:
    mount.check_one_of("mountPropagation", _PROPAGATIONS)
    propagation = mount.text("mountPropagation")
    if propagation == "Bidirectional" and not container.child_or_empty("securityContext").flag("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        mount.forbidden("mountPropagation", detail)
    mount.check_one_of("recursiveReadOnly", _RECURSIVE)
    if mount.text("recursiveReadOnly", "Disabled") == "Disabled":
        return
    if not mount.flag("readOnly"):
        mount.forbidden("recursiveReadOnly", "may only be specified when readOnly is true")
    if propagation not in ("", "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        mount.forbidden("recursiveReadOnly", detail)


def _check_devices(devices: list[Place], volumes: Volumes) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    for device in devices:
        name, path = device.text("name"), device.text("devicePath")
        device.require("name", "devicePath")
        if name and name in names:
            device.invalid("name", name, "must be unique")
        if path and path in paths:
            device.invalid("devicePath", path, "must be unique")
        names.add(name)
        paths.add(path)
        device.check("devicePath", backsteps_problem(path))
        if name not in volumes:
            device.not_found("name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & set(volumes[name]):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            device.invalid("name", name, detail)
