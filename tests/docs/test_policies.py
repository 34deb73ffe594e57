"""The page on policies documents every argument, with its default."""

import msgspec
import pytest

from podium.api.times import format_duration
from podium.framework.settings.arguments import Strict
from podium.plugins.rescheduling.demand_policies import SatisfyPreferencesArgs, SpreadDuplicatesArgs
from podium.plugins.rescheduling.move_to_underused_nodes import MoveToUnderusedNodesArgs
from podium.plugins.rescheduling.registry import (
    ConsolidateArgs,
    PrepareForMaintenanceArgs,
    ReplaceOldPodsArgs,
)
from podium.plugins.rescheduling.signal_policies import LeavePoorServiceArgs, SeparateInterferingArgs
from tests.docs.test_reference import arguments_listed


@pytest.mark.parametrize(
    ("policy", "args"),
    [
        ("MoveToUnderusedNodes", MoveToUnderusedNodesArgs),
        ("SatisfyPreferences", SatisfyPreferencesArgs),
        ("SpreadDuplicates", SpreadDuplicatesArgs),
        ("Consolidate", ConsolidateArgs),
        ("LeavePoorService", LeavePoorServiceArgs),
        ("SeparateInterfering", SeparateInterferingArgs),
        ("PrepareForMaintenance", PrepareForMaintenanceArgs),
        ("ReplaceOldPods", ReplaceOldPodsArgs),
    ],
)
def test_every_argument_is_documented_with_its_default(policy: str, args: type[Strict]) -> None:
    report = arguments_listed("docs/rescheduling-policies.md", policy)
    assert list(report) == list(args.__struct_encode_fields__)
    for field in msgspec.structs.fields(args):
        name, default = field.encode_name, field.default
        if field.name.endswith("_ns"):
            assert f"`{format_duration(default)}`" in report[name]
        elif isinstance(default, int | float) and not isinstance(default, bool):
            assert f"`{default:g}`" in report[name]
