"""Carrying out the steps of a scenario."""

from __future__ import annotations

from podium.api.errors import InputError
from podium.api.kinds import KINDS
from podium.api.pod import Pod
from podium.sim.api_server import APIServer
from podium.sim.kubelet import Kubelet
from podium.sim.scenario import Apply, Finish, Remove, Step
from podium.store.errors import StoreError
from podium.store.stored import Raw, Stored

SCENARIO = "scenario"
