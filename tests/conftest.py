"""What all tests share: how hypothesis searches, and where the production trace lies."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

OPENB = Path(__file__).parents[2] / "shared" / "data" / "openb"

# No deadline: whether a test passes must not depend on the machine's speed.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if "CI" in os.environ else "local")


@pytest.fixture(scope="session")
def openb() -> Path:
    """The folder of the openb trace (nodes.csv, pods.csv), which lies beside the project, not in it."""
    if not OPENB.is_dir():
        pytest.skip("the openb trace is not beside the project: ../shared/data/openb is missing")
    return OPENB
