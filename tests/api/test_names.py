import pytest

from podium.api.names import label_key_problem, label_name_problem, label_value_problem, subdomain_problem


@pytest.mark.parametrize("name", ["a", "web-0", "10.0.0.1", "a.b-c.d", "x" * 253])
def test_names_are_dns_subdomains(name: str) -> None:
    assert subdomain_problem(name) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "A", "a_b", "-a", "a-", "a..b", "a/b", "a%2fb", "a\n", "ä", "a\0", "x" * 254]
)
def test_names_must_be_dns_subdomains(name: str) -> None:
    assert "not a valid name" in (subdomain_problem(name) or "")


def test_namespaces_are_single_labels_of_at_most_63_characters() -> None:
    assert label_name_problem("team-1") is None
    assert label_name_problem("x" * 63) is None
    assert label_name_problem("x" * 64) is not None
    assert label_name_problem("a.b") is not None


@pytest.mark.parametrize("key", ["app", "App_2.x", "example.com/app", "x" * 63, f"{'y' * 253}/a"])
def test_label_keys_have_an_optional_dns_prefix(key: str) -> None:
    assert label_key_problem(key) is None


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a/b/c", "Example.com/a", "-a", "a b", "x" * 64, f"{'y' * 254}/a", "a\n"]
)
def test_other_keys_are_refused(key: str) -> None:
    assert "not a valid key" in (label_key_problem(key) or "")


@pytest.mark.parametrize("value", ["", "a", "1.0", "A_b-c", "x" * 63])
def test_label_values_may_be_empty(value: str) -> None:
    assert label_value_problem(value) is None


@pytest.mark.parametrize("value", ["-", "a b", "a/b", ".a", "x" * 64, "ä", "a\n"])
def test_other_values_are_refused(value: str) -> None:
    assert "not a valid label value" in (label_value_problem(value) or "")
