"""Each public class of the source has a name of its own."""

import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/podium"
CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)
# The first is a field and a plugin of Kubernetes; the second is what users import, and what schedulers decide on.
SHARED = frozenset({"NodeAffinity", "Cluster"})


def test_no_two_public_classes_share_a_name() -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in CLASS.findall(path.read_text()):
            modules[name].append(str(path.relative_to(SOURCE)))

    assert {name: paths for name, paths in modules.items() if len(paths) > 1 and name not in SHARED} == {}
    assert all(len(modules[name]) == 2 for name in SHARED)
