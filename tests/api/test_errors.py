from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError, PodiumError, field_path, shown


def test_an_input_error_says_where_and_what_on_one_line() -> None:
    error = InputError(
        "must be 0 or more",
        source="pods.yaml",
        document=2,
        object="Pod default/web",
        path=".spec.containers[0].resources.requests.cpu",
    )

    assert str(error) == (
        "pods.yaml, document 2, Pod default/web, .spec.containers[0].resources.requests.cpu: must be 0 or more"
    )


def test_parts_of_the_place_that_are_not_known_are_left_out() -> None:
    assert str(InputError("is empty", source="a.yaml")) == "a.yaml: is empty"
    assert str(InputError("is empty")) == "is empty"


def test_an_input_error_is_an_error_for_people() -> None:
    assert issubclass(InputError, PodiumError)


def test_locating_an_error_fills_in_only_what_is_not_known() -> None:
    error = InputError("is wrong", object="Pod default/web", path=".spec")

    located = error.located(source="a.yaml", document=3, object="Pod other/name")

    assert str(located) == "a.yaml, document 3, Pod default/web, .spec: is wrong"
    assert str(located.located(source="b.yaml", document=9)) == str(located)


def test_text_of_the_input_cannot_drive_the_terminal() -> None:
    name = shown("\x1b[31mred\x07\u202e\ud800")

    error = InputError(f"{name} is wrong", object="Pod a\nb")

    assert str(error) == 'Pod a\\nb: "\\x1b[31mred\\x07\\u202e\\ud800" is wrong'


@given(st.text(), st.text(), st.text(), st.text())
def test_any_error_is_one_printable_line_of_bounded_length(source: str, name: str, path: str, problem: str) -> None:
    line = str(InputError(problem * 1_000, source=source * 1_000, object=name * 1_000, path=path * 1_000))

    assert line.isprintable()
    assert len(line) < 20_000


def test_values_are_quoted_as_they_were_written() -> None:
    written = ["web", 3, 1.5, True, None, {"a": 1}, [1]]

    assert [shown(value) for value in written] == ['"web"', "3", "1.5", "true", "null", "an object", "a list"]


def test_long_values_are_shortened() -> None:
    assert len(shown("x" * 10_000)) < 100
    assert shown(10**5_000) == "a number of more than 77 digits"


def test_keys_that_are_not_words_are_shown_in_brackets() -> None:
    assert field_path(".metadata.labels", "app") == ".metadata.labels.app"
    assert field_path(".metadata.labels", "example.com/app") == '.metadata.labels["example.com/app"]'
