"""Small JSON values of every shape, for the tests of patches."""

from typing import Any

from hypothesis import strategies as st

FIELDS = st.sampled_from(["a", "b", "c", "d/e", "f~g", ""])
PLAIN = st.one_of(st.booleans(), st.integers(-2, 2), st.sampled_from([0.5, 1.0, "", "x", "1"]))


def _of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=3) | st.dictionaries(FIELDS, values, max_size=3)


VALUES = st.recursive(PLAIN, _of, max_leaves=8)
OBJECTS = st.dictionaries(FIELDS, VALUES, max_size=4)
