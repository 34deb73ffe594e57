import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.app.console.table import ELLIPSIS, Shared, cut_apart, shared_domain, shared_parts, without_middle
from tests.app.names import MIXED, NAMES

AWS = ["ip-10-0-12-34.eu-west-1.compute.internal", "ip-10-0-13-34.eu-west-1.compute.internal"]
GKE = ["gke-prod-pool-1-3f2a9c1d-x7k2", "gke-prod-pool-1-3f2a9c1d-b4xx"]


@pytest.mark.parametrize(
    ("names", "end"),
    [
        (AWS, ".eu-west-1.compute.internal"),
        (AWS[:1], ".eu-west-1.compute.internal"),
        ([*AWS, "ip-10-0-1-1.eu-central-1.compute.internal"], ".compute.internal"),
        ([*AWS, "master-1"], ""),
        (GKE, ""),
        (["a.b", "c.b"], ""),
        ([".internal.example", "a.internal.example"], ".example"),
        ([], ""),
    ],
)
def test_names_share_the_domain_that_all_of_them_end_in_if_that_saves_anything(names: list[str], end: str) -> None:
    assert shared_domain(names) == Shared(end=end)


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (GKE, Shared("gke-prod-pool-1-3f2a9c1d-")),
        (["aks-nodepool1-12345678-vmss00000a", "aks-nodepool1-12345678-vmss00000b"], Shared("aks-nodepool1-12345678-")),
        (AWS, Shared("ip-10-0-", ".eu-west-1.compute.internal")),
        (["default/web-5d4f8c7b9-x2x4z", "default/web-5d4f8c7b9-abcde"], Shared("default/web-5d4f8c7b9-")),
        (["Deployment shop/fe", "Deployment shop/cart"], Shared("Deployment shop/")),
        (["worker-1", "worker-2"], Shared("worker-")),
        (["worker-", "worker-1"], Shared()),
        (["a-1", "a-2"], Shared()),
        (["web", "web-1"], Shared()),
        (["web"], Shared()),
    ],
)
def test_names_share_what_they_begin_with_up_to_a_separator(names: list[str], shared: Shared) -> None:
    assert shared_parts(names) == shared


@pytest.mark.parametrize(
    ("shared", "report"),
    [
        (Shared(end=".internal"), "nodes end in .internal"),
        (Shared("node-"), "nodes begin with node-"),
        (Shared("ip-", ".internal"), "nodes begin with ip- and end in .internal"),
        (Shared(), ""),
    ],
)
def test_shared_parts_of_names_are_described_in_a_sentence(shared: Shared, report: str) -> None:
    assert shared.note("nodes") == report


@given(NAMES | MIXED)
def test_the_shared_prefix_and_the_rest_form_the_whole_name(names: set[str]) -> None:
    for shared in (shared_domain(names), shared_parts(names)):
        for name in names:
            rest = shared.rest_of(name).removeprefix(ELLIPSIS)
            assert rest
            assert shared.beginning + rest + shared.end == name


@given(NAMES | MIXED, st.integers(3, 80))
def test_shortened_names_stay_distinct_and_uncuttable_names_whole(names: set[str], width: int) -> None:
    forms = cut_apart(names, width)

    assert set(forms) == names
    assert len(set(forms.values())) == len(names)
    assert all(form == name or len(form) <= width for name, form in forms.items())


def test_the_middle_goes_where_that_is_enough() -> None:
    assert cut_apart(["default/web-5d4f8c7b9-x2x4z", "kube-system/coredns-66b5f7-abcde"], 15) == {
        "default/web-5d4f8c7b9-x2x4z": "default…9-x2x4z",
        "kube-system/coredns-66b5f7-abcde": "kube-sy…7-abcde",
    }


def test_names_that_differ_in_the_middle_keep_that_and_lose_what_they_share() -> None:
    names = [f"a-long-beginning-of-all-{number}.eu-west-1.compute.internal" for number in ("one", "two")]

    assert cut_apart(names, 40) == {
        names[0]: "…g-of-all-one.eu-west-1.compute.internal",
        names[1]: "…g-of-all-two.eu-west-1.compute.internal",
    }
    assert cut_apart(names, 14) == {names[0]: "…one.eu-west-…", names[1]: "…two.eu-west-…"}


def test_five_thousand_names_stay_distinct_when_shortened() -> None:
    names = [f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal" for number in range(5000)]

    forms = cut_apart(names, 24)

    assert len(set(forms.values())) == 5000
    assert max(map(len, forms.values())) <= 24


def test_long_names_are_shortened_in_the_middle() -> None:
    assert without_middle("abcdefghij", 7) == "abc…hij"
    assert without_middle("abcdefg", 7) == "abcdefg"
