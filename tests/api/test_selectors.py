import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeTerm,
    Requirement,
    Selector,
    compile_label_selector,
    compile_node_selector,
    node_selector_matches,
    parse_field_selector,
    parse_int64,
    parse_label_selector,
    requirement_problem,
    selector_from_labels,
)

KEYS = st.sampled_from(["a", "b", "in", "notin", "example.com/c"])
VALUES = st.sampled_from(["", "x", "y", "in", "3", "007", "10"])
LABELS = st.dictionaries(KEYS, VALUES)
MANY_VALUES = st.lists(VALUES, min_size=1, max_size=3).map(tuple)
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["In", "NotIn"]), MANY_VALUES),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(Requirement, KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["3", "0"]).map(lambda one: (one,))),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(lambda requirements: Selector(tuple(requirements)))


def plainly_holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    present, value = requirement.key in labels, labels.get(requirement.key, "")
    if requirement.operator in ("Gt", "Lt"):
        if not present or not value.isdigit():
            return False
        bound = int(requirement.values[0])
        return int(value) > bound if requirement.operator == "Gt" else int(value) < bound
    return {
        "In": present and value in requirement.values,
        "NotIn": not present or value not in requirement.values,
        "Exists": present,
        "DoesNotExist": not present,
    }[requirement.operator]


@given(SELECTORS, LABELS)
def test_a_selector_matches_where_every_requirement_plainly_holds(selector: Selector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) == all(plainly_holds(one, labels) for one in selector.requirements)


@given(SELECTORS)
def test_a_selector_written_as_text_reads_as_itself(selector: Selector) -> None:
    assert parse_label_selector(str(selector)) == selector


@given(st.lists(REQUIREMENTS, max_size=4))
def test_selectors_with_the_same_conditions_are_equal_however_they_are_ordered(
    requirements: list[Requirement],
) -> None:
    shuffled = [Requirement(one.key, one.operator, one.values[::-1] * 2) for one in reversed(requirements)]

    one, other = Selector(tuple(requirements)), Selector((*shuffled, *requirements))

    assert one == other
    assert hash(one) == hash(other)


def test_an_absent_key_matches_not_in_and_does_not_exist_only() -> None:
    matching = [
        operator
        for operator, values in [
            ("In", ("x",)),
            ("NotIn", ("x",)),
            ("Exists", ()),
            ("DoesNotExist", ()),
            ("Gt", ("1",)),
            ("Lt", ("1",)),
        ]
        if Requirement("a", operator, values).matches(None)
    ]

    assert matching == ["NotIn", "DoesNotExist"]


@pytest.mark.parametrize("value", ["", "x", "5.0", "0x5", "5_0", " 5", "\u0665", "9223372036854775808", "5" * 100])
def test_gt_and_lt_match_only_64_bit_integers(value: str) -> None:
    assert not Requirement("a", "Gt", ("-1",)).matches(value)
    assert not Requirement("a", "Lt", ("9223372036854775807",)).matches(value)


def test_integers_are_read_as_go_reads_them() -> None:
    assert [parse_int64(text) for text in ("+5", "-0", "007", "9223372036854775807")] == [5, 0, 7, 2**63 - 1]


def test_an_unknown_operator_raises() -> None:
    with pytest.raises(ValueError, match="no such operator"):
        Requirement("a", "Near", ("x",)).matches("x")


def test_no_selector_selects_nothing_and_the_empty_one_everything() -> None:
    assert compile_label_selector(None) == NOTHING
    assert compile_label_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.matches({})
    assert not NOTHING.matches({"a": "x"})
    assert str(NOTHING) == "<nothing>"


def test_equalities_and_expressions_compile_to_one_form() -> None:
    written = LabelSelector(
        match_labels={"a": "x"},
        match_expressions=(LabelSelectorRequirement(key="b", operator="In", values=("z", "y", "z")),),
    )

    assert compile_label_selector(written) == parse_label_selector("b in (y,z),a=x")


@pytest.mark.parametrize(
    "wrong",
    [
        LabelSelector(match_labels={"not a key": "x"}),
        LabelSelector(match_labels={"a": "not a value"}),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="In"),)),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Exists", values=("x",)),)),
    ],
)
def test_an_invalid_stored_selector_matches_nothing(wrong: LabelSelector) -> None:
    assert compile_label_selector(wrong) == NOTHING


def test_a_selector_from_labels_selects_what_has_them_all() -> None:
    selector = selector_from_labels({"a": "x", "b": ""})

    assert selector.matches({"a": "x", "b": "", "c": "z"})
    assert not selector.matches({"a": "x"})
    assert selector_from_labels({}) == EVERYTHING


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", []),
        ("  ", []),
        ("a", [Requirement("a", "Exists")]),
        ("!a", [Requirement("a", "DoesNotExist")]),
        ("a=x", [Requirement("a", "In", ("x",))]),
        ("a==x", [Requirement("a", "In", ("x",))]),
        ("a!=x", [Requirement("a", "NotIn", ("x",))]),
        ("a=", [Requirement("a", "In", ("",))]),
        ("a>3", [Requirement("a", "Gt", ("3",))]),
        ("a < 3", [Requirement("a", "Lt", ("3",))]),
        ("a in (x, y)", [Requirement("a", "In", ("x", "y"))]),
        ("a notin (x)", [Requirement("a", "NotIn", ("x",))]),
        ("a in ()", [Requirement("a", "In", ("",))]),
        ("a in (x,,y)", [Requirement("a", "In", ("", "x", "y"))]),
        ("in in (in)", [Requirement("in", "In", ("in",))]),
        (
            "a=x,b,!c",
            [Requirement("a", "In", ("x",)), Requirement("b", "Exists"), Requirement("c", "DoesNotExist")],
        ),
    ],
)
def test_label_selectors_are_written_as_for_kubectl(text: str, requirements: list[Requirement]) -> None:
    assert parse_label_selector(text) == Selector(tuple(requirements))


@pytest.mark.parametrize(
    "text",
    [
        "a in (",
        "a in x",
        "a in (x",
        "a==b,,",
        "a=b,",
        ",a",
        "a=b c",
        "a b",
        "a=>b",
        "!a=b",
        "!!a",
        "!",
        "=x",
        "a in (x=y)",
        "a=(x)",
        "a>x",
        "a>-1",
        "a>1.5",
        "a>",
        "not/a/key",
        "a=-x",
        "a\0",
        "x" * 70_000,
    ],
)
def test_other_label_selectors_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="label selector"):
        parse_label_selector(text)


@given(st.text(alphabet="ab=!(),><in \t\x1b"))
def test_any_text_is_a_label_selector_or_refused(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except InputError:
        return

    assert parse_label_selector(str(selector)) == selector


def test_an_error_says_what_was_expected_and_what_was_found() -> None:
    with pytest.raises(InputError) as caught:
        parse_label_selector("a in (x")

    assert str(caught.value) == "label selector \"a in (x\": expected ',' or ')', but found the end"


def test_field_selectors_compare_fields_and_an_absent_field_is_empty() -> None:
    selector = parse_field_selector("metadata.name=web,status.phase!=Running, spec.nodeName==")

    assert selector.matches({"metadata.name": "web", "status.phase": "Pending"})
    assert not selector.matches({"metadata.name": "web", "status.phase": "Running"})
    assert not selector.matches({"metadata.name": "web", "spec.nodeName": "n1"})
    assert parse_field_selector("").matches({})


@pytest.mark.parametrize("text", ["a", "=x", "a=b=c", "a!b", "a in (b)", "a=x\\,y", "x" * 70_000])
def test_other_field_selectors_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="field selector"):
        parse_field_selector(text)


def node_selector(*terms: NodeSelectorTerm) -> tuple[NodeTerm, ...]:
    return compile_node_selector(NodeSelector(node_selector_terms=terms))


def test_any_term_of_a_node_selector_may_match_and_all_its_conditions_must() -> None:
    zone = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    cores = NodeSelectorRequirement(key="cores", operator="Gt", values=("8",))
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",))
    terms = node_selector(NodeSelectorTerm(match_expressions=(zone, cores)), NodeSelectorTerm(match_fields=(name,)))

    assert node_selector_matches(terms, {"zone": "a", "cores": "16"}, "n9")
    assert node_selector_matches(terms, {}, "n1")
    assert not node_selector_matches(terms, {"zone": "a", "cores": "8"}, "n9")


def test_a_term_without_conditions_and_a_selector_without_terms_match_no_node() -> None:
    assert not node_selector_matches(node_selector(NodeSelectorTerm()), {"a": "x"}, "n1")
    assert not node_selector_matches(node_selector(), {"a": "x"}, "n1")


@pytest.mark.parametrize(
    "term",
    [
        NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="a", operator="Gt", values=("x",)),)),
        NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="a", operator="NotIn"),)),
        NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key="metadata.uid", operator="NotIn", values=("x",)),)),
        NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key="metadata.name", operator="Exists"),)),
        NodeSelectorTerm(
            match_fields=(NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=("x", "y")),)
        ),
    ],
)
def test_a_term_with_an_invalid_condition_matches_no_node(term: NodeSelectorTerm) -> None:
    assert not node_selector_matches(node_selector(term), {}, "n1")


@pytest.mark.parametrize(
    ("requirement", "field"),
    [
        (("not a key", "Exists", ()), "key"),
        (("a", "In", ()), "values"),
        (("a", "Exists", ("x",)), "values"),
        (("a", "Lt", ("1", "2")), "values"),
        (("a", "Near", ("x",)), "operator"),
        (("a", "In", ("x", "not a value")), "values[1]"),
    ],
)
def test_selector_requirement_errors_name_the_field(requirement: tuple[str, str, tuple[str, ...]], field: str) -> None:
    problem = requirement_problem(*requirement)

    assert problem is not None
    assert problem[0] == field
