"""Reading and validating a DisruptionPolicy."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.disruption_policy import MAX_BUCKETS, CapBucket, DisruptionPolicy
from podium.api.errors import InputError
from podium.api.input.codec import decode
from podium.api.meta import Raw
from podium.api.times import format_exact_time

SECOND = 10**9
HOUR = 3_600 * SECOND


def manifest(spec: Raw | None = None, status: Raw | None = None, name: str = "default", **more: Any) -> Raw:
    raw = {"apiVersion": "podium.dev/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": name}, **more}
    return {**raw, "spec": spec or {}, "status": status or {}}


def policy(spec: Raw | None = None, status: Raw | None = None) -> DisruptionPolicy:
    read = decode(manifest(spec, status))
    assert isinstance(read, DisruptionPolicy)
    return read


def next_ns(policy: DisruptionPolicy, component: str, namespace: str, now: int) -> int:
    exhausted = policy.exhausted_cap(component, namespace, now)
    return now if exhausted is None else exhausted[2]


def error_of(spec: Raw, **more: Any) -> str:
    with pytest.raises(InputError) as caught:
        decode(manifest(spec, **more))
    return f"{caught.value.path.removeprefix('.spec')}: {caught.value.problem}"


def test_a_policy_that_says_nothing_has_the_defaults() -> None:
    spec = policy().spec

    assert spec.levels == ()
    assert spec.several_budgets == "Refuse"
    assert spec.default_budget(0) is None
    assert (spec.avoid_lists.max_entries, spec.avoid_lists.expire_after_ns) == (16, HOUR)


def test_a_cluster_has_one_policy() -> None:
    assert error_of({}, name="mine").startswith('.metadata.name: "mine" is not the name of')
    assert error_of({}, name="mine").endswith("write default")


@pytest.mark.parametrize("given", ["Critical > Normal>Preemptible", ["Critical", "Normal", "Preemptible"]])
def test_priorities_are_a_text_or_a_list_and_their_classes_are_in_lower_case(given: Any) -> None:
    assert policy({"priorities": given}).spec.levels == ("critical", "normal", "preemptible")


@pytest.mark.parametrize("given", ["", "  ", []])
def test_no_priorities_are_no_levels(given: Any) -> None:
    assert policy({"priorities": given}).spec.levels == ()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a > > b", "a name is missing"),
        ("a >", "a name is missing"),
        ([""], "a name is missing"),
        ("a > b > A", '"a" is given twice'),
        ("very high > low", '"very high" is not a valid name'),
        ({"a": 1}, "an object is not text or a list"),
        ([str(number) for number in range(101)], "has 101 entries"),
    ],
)
def test_names_of_priorities_are_those_of_classes(given: Any, problem: str) -> None:
    assert error_of({"priorities": given}).startswith(f".priorities: {problem}")


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"prioritys": "a"}, ': there is no field "prioritys"; did you mean priorities or priorityRules?'),
        (
            {"caps": [{"component": "a", "max": "1/1h", "mxa": 1}]},
            '.caps[0]: there is no field "mxa"; did you mean max?',
        ),
        ({"avoidLists": {"entries": 1}}, '.avoidLists: there is no field "entries"; did you mean maxEntries?'),
        ({"severalBudgets": "Require"}, '.severalBudgets: "Require" is not one of "Refuse", "RequireAll"'),
        ({"defaultBudgets": [{"minPriority": "high"}]}, '.defaultBudgets[0].minPriority: "high" is not a whole number'),
    ],
)
def test_unknown_policy_fields_are_rejected(spec: Raw, error: str) -> None:
    assert error_of(spec) == error


def test_nothing_stands_beside_the_spec_and_the_status() -> None:
    assert error_of({}, data={}).startswith(': there is no field "data"')
    assert error_of({}, status={"used": []}).startswith('.status: there is no field "used"')


def test_the_first_default_budget_whose_priority_a_pod_has_is_the_one() -> None:
    spec = policy({"defaultBudgets": [{"minPriority": 100, "maxUnavailable": 1}, {"maxUnavailable": "50%"}]}).spec

    found = [spec.default_budget(priority) for priority in (1_000, 100, 99, -5)]

    assert [one and one.max_unavailable for one in found] == [1, 1, "50%", "50%"]


def test_below_the_lowest_priority_there_may_be_no_default_budget() -> None:
    spec = policy({"defaultBudgets": [{"minPriority": 100, "minAvailable": 1}]}).spec

    assert spec.default_budget(99) is None


@pytest.mark.parametrize(
    ("budgets", "error"),
    [
        ([{}], "[0]: needs either maxUnavailable or minAvailable"),
        ([{"maxUnavailable": 1, "minAvailable": 1}], "[0]: needs either maxUnavailable or minAvailable"),
        ([{"maxUnavailable": "half"}], '[0].maxUnavailable: "half" is neither a number nor a percentage'),
        ([{"minAvailable": -1}], "[0].minAvailable: -1 is negative"),
        ([{"minAvailable": 1}, {"minPriority": 1, "minAvailable": 1}], "[0].minPriority: is missing"),
        (
            [{"minPriority": 5, "minAvailable": 1}, {"minPriority": 5, "minAvailable": 2}],
            "[1].minPriority: 5 is not below 5, so that the entry never counts",
        ),
    ],
)
def test_default_budgets_that_cannot_count_are_refused(budgets: Any, error: str) -> None:
    assert error_of({"defaultBudgets": budgets}).startswith(f".defaultBudgets{error}")


@pytest.mark.parametrize(
    ("caps", "error"),
    [
        ([{"component": "drain", "max": "often"}], '[0].max: "often" is not a rate; write how many in how long'),
        ([{"component": "", "max": "1/1h"}], "[0].component: is empty"),
        ([{"component": "drain"}], "[0].max: is missing"),
        ([{"component": "a", "max": "1/1h"}, {"component": "a", "max": "2/1h"}], '[1].component: "a" is given twice'),
        ([{"max": "1/1h"}, {"max": "2/1h"}], "[1].component: a cap on all components is given twice"),
        ([{"max": "1/1h", "per": "Node"}], '[0].per: "Node" is not one of "Cluster", "Namespace"'),
    ],
)
def test_caps_that_cannot_be_read_are_refused(caps: Any, error: str) -> None:
    assert error_of({"caps": caps}).startswith(f".caps{error}")


@pytest.mark.parametrize(
    ("lists", "error"),
    [
        ({"maxEntries": 0}, "maxEntries: 0 is out of range; it must be 1 to 1000"),
        ({"maxEntries": 1_001}, "maxEntries: 1001 is out of range"),
        ({"expireAfter": "soon"}, 'expireAfter: "soon" is not a duration'),
        ({"expireAfter": "0s"}, 'expireAfter: "0s" is not longer than 0s'),
    ],
)
def test_avoid_lists_have_bounds(lists: Raw, error: str) -> None:
    assert error_of({"avoidLists": lists}).startswith(f".avoidLists.{error}")


def test_the_status_has_times() -> None:
    error = error_of({}, status={"caps": [{"component": "drain", "fullTime": "noon"}]})

    assert error.startswith('.status.caps[0].fullTime: "noon" is not a time')


def test_a_component_without_a_cap_may_always_disrupt() -> None:
    assert next_ns(policy(), "drain", "default", 77) == 77
    assert policy().status_after("drain", "default", 77) is None


def taken(spec: Raw, status: Raw, *disruptions: tuple[str, str], now: int = 0) -> Raw:
    """Return the status once components have disrupted in namespaces."""
    for component, namespace in disruptions:
        status = policy(spec, status).status_after(component, namespace, now) or status
    return status


def test_a_cap_is_a_bucket_of_its_component() -> None:
    spec = {"caps": [{"component": "drain", "max": "2/1h"}, {"component": "autoscaler", "max": "1/1h"}]}
    status = taken(spec, {}, ("drain", "web"))
    assert next_ns(policy(spec, status), "drain", "web", 0) == 0

    status = taken(spec, status, ("drain", "db"))
    after = policy(spec, status)

    assert status == {"caps": [{"component": "drain", "fullTime": "1970-01-01T01:00:00Z"}]}
    assert next_ns(after, "drain", "web", 0) == HOUR // 2
    assert next_ns(after, "autoscaler", "web", 0) == 0


def test_a_cap_on_each_namespace_is_a_bucket_for_each_and_counts_all_components_where_it_names_none() -> None:
    spec = {"caps": [{"max": "2/1h", "per": "Namespace"}, {"component": "drain", "max": "1/1h", "per": "Namespace"}]}
    status = taken(spec, {}, ("drain", "web"), ("autoscaler", "web"), ("", "db"))
    after = policy(spec, status)

    half, full = "1970-01-01T00:30:00Z", "1970-01-01T01:00:00Z"
    assert status["caps"] == [
        {"namespace": "db", "fullTime": half},
        {"namespace": "web", "fullTime": full},
        {"component": "drain", "namespace": "web", "fullTime": full},
    ]
    waits = {
        (component, namespace): next_ns(after, component, namespace, 0)
        for component in ("drain", "autoscaler", "")
        for namespace in ("web", "db")
    }
    assert [key for key, next_ns in waits.items() if next_ns] == [("drain", "web"), ("autoscaler", "web"), ("", "web")]
    assert waits["drain", "web"] == HOUR
    assert waits["", "web"] == HOUR // 2


def test_the_cap_with_the_longest_wait_is_reported() -> None:
    spec = {"caps": [{"max": "1/1h", "per": "Namespace"}, {"component": "drain", "max": "1/2h"}]}
    after = policy(spec, taken(spec, {}, ("drain", "web")))

    exhausted = after.exhausted_cap("drain", "web", 0)

    assert exhausted is not None
    assert (exhausted[0], str(exhausted[1]), exhausted[2]) == (CapBucket("drain"), "1/2h", 2 * HOUR)


def test_a_disruption_that_is_not_allowed_takes_what_there_is_of_the_others() -> None:
    spec = {"caps": [{"max": "1/1h", "per": "Namespace"}, {"max": "3/3h"}]}
    status = taken(spec, {}, ("", "web"), ("", "web"))

    assert status["caps"] == [
        {"fullTime": "1970-01-01T02:00:00Z"},
        {"namespace": "web", "fullTime": "1970-01-01T01:00:00Z"},
    ]


def test_a_bucket_that_is_full_again_is_left_out() -> None:
    spec = {"caps": [{"max": "1/1h", "per": "Namespace"}]}
    status = taken(spec, {}, ("", "web"))

    later = taken(spec, status, ("", "db"), now=HOUR)

    assert [entry["namespace"] for entry in later["caps"]] == ["db"]


def test_a_status_has_a_limit_and_leaves_out_what_is_full_again_soonest() -> None:
    spec = {"caps": [{"max": "3/1h", "per": "Namespace"}]}
    full = {CapBucket(namespace=f"n{number:04}"): HOUR + number for number in range(MAX_BUCKETS + 5)}

    written = policy(spec).status_with(full, 0)["caps"]

    assert len(written) == MAX_BUCKETS
    assert [written[0]["namespace"], written[-1]["namespace"]] == ["n0005", f"n{MAX_BUCKETS + 4:04}"]


@given(seconds=st.integers(1, 10_000))
def test_a_policy_that_replaces_another_keeps_what_was_used_of_its_caps(seconds: int) -> None:
    old = {"caps": [{"component": one, "max": "2/1h"} for one in ("kept", "changed", "dropped", "unused")]}
    full = format_exact_time(seconds * SECOND)
    before = policy(old, {"caps": [{"component": one, "fullTime": full} for one in ("changed", "dropped", "kept")]})
    new = [{"component": "kept", "max": "2/1h"}, {"component": "changed", "max": "4/2h"}]

    status = policy({"caps": [*new, {"component": "unused", "max": "9/1h"}]}).status_carried_over(before)

    changed = format_exact_time(seconds * SECOND + HOUR)
    assert status == {"caps": [{"component": "changed", "fullTime": changed}, {"component": "kept", "fullTime": full}]}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"budgetBounds": [{}]}, ".budgetBounds[0]: says nothing; give minDisruptions, minRate or both"),
        ({"budgetBounds": [{"minRate": "often"}]}, ".budgetBounds[0].minRate: "),
        ({"budgetBounds": [{"minDisruptions": "1"}]}, ".budgetBounds[0].minDisruptions: "),
        (
            {"budgetBounds": [{"minDisruptions": 1}, {"minPriority": 5, "minDisruptions": 1}]},
            ".budgetBounds[0].minPriority: is missing; only the last entry stands for any priority",
        ),
        (
            {"budgetBounds": [{"minPriority": 5, "minDisruptions": 1}, {"minPriority": 5, "minRate": "1/1h"}]},
            ".budgetBounds[1].minPriority: 5 is not below 5",
        ),
        (
            {"budgetBounds": [{"minDisruptions": 1}], "defaultBudgets": [{"maxUnavailable": 0}]},
            ".defaultBudgets[0]: maxUnavailable 0 is stricter than minDisruptions, 1 in .spec.budgetBounds",
        ),
    ],
)
def test_bounds_on_budgets_that_mean_nothing_are_refused(spec: Raw, problem: str) -> None:
    assert error_of(spec).startswith(problem)


def test_the_first_bound_counts_that_is_not_above_the_priority() -> None:
    spec = policy(
        {"budgetBounds": [{"minPriority": 5, "minRate": "1/1h"}, {"minPriority": 0, "minDisruptions": 1}]}
    ).spec
    high, low = spec.budget_bounds

    assert [spec.budget_bound(priority) for priority in (9, 5, 4, -1)] == [high, high, low, None]
    assert spec.possible_bounds == (*spec.budget_bounds, None)


LOW = {"priorityClassName": "low"}
FRONT = {"podSelector": {"matchLabels": {"tier": "front"}}}


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ([{"name": "a"}], "[0].priorityClassName: is missing"),
        ([LOW], "[0].name: is missing"),
        ([{"name": "A b", **LOW}], '[0].name: "A b" is not a valid name'),
        ([{"name": "a", "priorityClassName": "so low"}], '[0].priorityClassName: "so low" is not a valid name'),
        ([{"name": "a", **LOW, **FRONT}, {"name": "a", **LOW}], '[1].name: "a" is given twice'),
        ([{"name": "a", **LOW}, {"name": "b", **LOW}], '[0]: all pods meet the conditions, so that "b" below never'),
        ([{"name": "a", **LOW, "qosClasses": ["Best"]}], '[0].qosClasses[0]: "Best" is not one of'),
        ([{"name": "a", **LOW, "whenStated": "Drop"}], '[0].whenStated: "Drop" is not one of'),
        (
            [{"name": "a", **LOW, "podSelector": {"matchExpressions": [{"key": "tier", "operator": "In"}]}}],
            "[0].podSelector.matchExpressions[0].values: In needs at least one value",
        ),
    ],
)
def test_priority_rules_that_cannot_count_are_refused(rules: Any, error: str) -> None:
    assert error_of({"priorityRules": rules}).startswith(f".priorityRules{error}")
