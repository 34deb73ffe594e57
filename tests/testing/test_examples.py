"""The example tests pass."""

from pathlib import Path
from runpy import run_path

EXAMPLE = Path(__file__).parents[2] / "examples" / "testing" / "test_restarts.py"


def test_each_test_of_the_examples_holds() -> None:
    tests = [value for name, value in run_path(str(EXAMPLE)).items() if name.startswith("test_")]

    for test in tests:
        test()
    assert tests
