"""The cluster autoscaler that a file asks for."""

from __future__ import annotations

from dataclasses import replace

from podium.api.errors import InputError, shown
from podium.api.meta import Raw
from podium.app.serving.one_object import read_one
from podium.sim.scenario.autoscaling import Autoscaling, read_autoscaling
from podium.sim.scenario.fields import Fields
from podium.sim.scenario.scenario import API_VERSION


def read_autoscaler(path: str, priority_cutoff: int | None) -> Autoscaling:
    """The autoscaler in a file: an Autoscaler with a `spec` as `spec.autoscaler` of a Scenario, or such a Scenario.

    ``priority_cutoff`` is in place of the file's own. Raises InputError.
    """
    try:
        found = _autoscaling(read_one(path, "Autoscaler"))
    except InputError as error:
        raise error.located(source=path) from None
    if priority_cutoff is None:
        return found
    return replace(found, settings=replace(found.settings, priority_cutoff=priority_cutoff))


def _autoscaling(raw: Raw) -> Autoscaling:
    if raw.get("apiVersion") != API_VERSION:
        raise InputError(f"{shown(raw.get('apiVersion'))} is not {API_VERSION}", path=".apiVersion")
    if raw.get("kind") == "Autoscaler":
        return read_autoscaling(Fields(raw, "").fields("spec"))
    if raw.get("kind") == "Scenario":
        spec = Fields(raw, "").fields("spec")
        if not spec.has("autoscaler"):
            raise InputError("is missing, and must be given", path=".spec.autoscaler")
        return read_autoscaling(spec.fields("autoscaler"))
    raise InputError(f"{shown(raw.get('kind'))} is neither Autoscaler nor Scenario", path=".kind")
