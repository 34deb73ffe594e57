"""CEL expressions evaluate as in cel-go and Kubernetes' libraries."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.cel import MAX_LENGTH
from podium.api.cel.compiler import Declaration, Variables, compile_expression
from podium.api.cel.syntax import MAX_DEPTH
from podium.api.cel.values import CompileError, EvaluationError, Quantity, Semver, WithDefault

MANY = 10**6
DEVICE = Declaration(
    "object",
    fields={
        "driver": Declaration("string"),
        "attributes": Declaration("map", items=Declaration("map", items=Declaration("dyn"))),
    },
)
ENVIRONMENT = {"device": DEVICE, "x": Declaration("dyn"), "q": Declaration("kubernetes.Quantity")}


def variables(x: Any = None) -> dict[str, Any]:
    attributes = WithDefault({"gpu.example.com": {"model": "a100", "cores": 8, "healthy": True}})
    device = {"driver": "gpu.example.com", "attributes": attributes}
    return {"device": device, "x": x, "q": Quantity.of("40Gi")}


def value_of(text: str, x: Any = None) -> bool:
    return compile_expression(text, ENVIRONMENT).is_true(variables(x), MANY)


def cost_of(text: str, x: Any = None) -> int:
    scope = Variables(variables(x), MANY)
    compile_expression(text, ENVIRONMENT).evaluate(scope)
    return scope.cost


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
        "1 == 1.0 && 1u == 1 && 2 > 1.5",
        "'a' != 1",
        "0x1f == 31",
        r"'\x41\102é' == 'ABé' && r'\d' == '\\d'",
        "b'abc' == bytes('abc')",
        "'''a\nb''' == 'a\\nb'",
        "1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}",
        "{'a': {'b': 1}}.a.b == 1",
        "[1, 2, 3][1] == 2",
        "true ? true : 1 / 0 == 1",
        "[1, 2, 3].all(n, n > 0) && [1, 2].exists(n, n == 2) && [1, 2].exists_one(n, n > 1)",
        "[1, 2, 3].filter(n, n > 1).map(n, n * 2) == [4, 6]",
        "[1, 2, 3].map(n, n > 1, n) == [2, 3]",
        "{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])",
        "cel.bind(d, device.attributes['gpu.example.com'], d.healthy && d.cores == 8)",
        "has(device.attributes['gpu.example.com'].model) && !has(device.attributes['gpu.example.com'].nothing)",
        "size('abc') == 3 && 'abc'.size() == 3 && size([1]) == 1",
        "'gpu.example.com'.startsWith('gpu') && 'a.b'.endsWith('.b') && 'abc'.contains('b')",
        "'gpu-17'.matches('^gpu-[0-9]+$') && 'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "'A-b'.lowerAscii() == 'a-b' && 'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "'abc'.substring(1) == 'bc' && 'abc'.charAt(1) == 'b' && 'abcb'.lastIndexOf('b') == 3",
        "'aXbX'.replace('X', '-') == 'a-b-' && ' a '.trim() == 'a'",
        "int('12') == 12 && double('1.5') == 1.5 && string(3) == '3' && bool('true') && int(2.9) == 2",
        "[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3 && [1, 2].isSorted() && [1, 2].indexOf(2) == 1",
        "sets.contains([1, 2], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1, 1])",
        "q.compareTo(quantity('40Gi')) == 0 && q.isGreaterThan(quantity('39Gi')) && q.isLessThan(quantity('1Ti'))",
        "q == quantity('40960Mi') && q.sub(quantity('39Gi')) == quantity('1Gi') && quantity('2k').asInteger() == 2000",
        "isQuantity('1Gi') && !isQuantity('1Q') && quantity('500m').sign() == 1 && !quantity('500m').isInteger()",
        "semver('1.2.3') == semver('1.2.3+build') && semver('1.10.0').isGreaterThan(semver('1.9.0'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.2.3').minor() == 2",
        "semver('v1.2', true) == semver('1.2.0') && isSemver('1.2.3') && !isSemver('v1.2.3')",
        "type(1) == int && type(dyn('a')) == string && type([]) != map && type(null) == null_type && dyn(1) == 1",
        "type(type(1u)) == type && type(duration('1s')) == google.protobuf.Duration && [1].all(int, int == 1)",
    ],
)
def test_boolean_expressions_evaluate_to_true(text: str) -> None:
    assert value_of(text)


def test_a_part_that_decides_makes_up_for_errors_in_others() -> None:
    unknown = "device.attributes['gpu.example.com'].nothing"

    assert value_of(f"{unknown} || true")
    assert value_of(f"true || {unknown}")
    assert not value_of(f"{unknown} && false")
    assert value_of("[1, 0].exists(n, 1 / n == 1)")
    assert not value_of("[0, 2].all(n, 1 / n > 0)")
    with pytest.raises(EvaluationError, match="no such key: nothing"):
        value_of(f"{unknown} || false")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("device.attributes['gpu.example.com'].nothing", "no such key: nothing"),
        ("device.attributes['other.example.com'].model == 'a100'", "no such key: model"),
        ("device.attributes['gpu.example.com'].model.length == 1", "no such key: length"),
        ("device.attributes['gpu.example.com'].model > 3", "no such overload"),
        ("x.startsWith('a')", "no such overload: startsWith"),
        ("1 / x == 1", "division by zero"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("[1][x + 1] == 1", "index out of bounds: 1"),
        ("quantity('nothing') == q", "is not a quantity"),
        ("semver('1.2') == semver('1.2')", "is not a semantic version"),
        ("device.attributes['gpu.example.com'].model", "CEL result of type string could not be converted to bool"),
        ("'a'.matches('(')", "error parsing regexp"),
        ("{x: 1, 0: 2} == {}", "repeated key"),
    ],
)
def test_an_expression_without_value_is_an_error_not_false(text: str, error: str) -> None:
    with pytest.raises(EvaluationError, match=error):
        value_of(text, 0)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("device.colour == 'red'", "undefined field 'colour'"),
        ("devise.driver == 'a'", "undeclared reference to 'devise'"),
        ("device.driver.nothing()", "undeclared reference to 'nothing'"),
        ("device.driver < 3", r"found no matching overload for '_<_' applied to '\(string, int\)'"),
        ("device.driver.startsWith(1)", r"'startsWith' applied to 'string.\(int\)'"),
        ("1 + 1", "must evaluate to bool or the unknown type, not int"),
        ("1 == ", "Syntax error"),
        ("'a' && true", "expected type 'bool' but found 'string'"),
        ("(3).all(n, n > 1)", "cannot be range of a comprehension"),
        ("has(device)", "invalid argument to has"),
        ("99999999999999999999 == 1", "invalid int literal"),
        ("now() == x", "undeclared reference to 'now'"),
    ],
)
def test_an_expression_that_can_never_have_a_value_is_rejected_at_compilation(text: str, error: str) -> None:
    with pytest.raises(CompileError, match=error):
        value_of(text)


def test_an_error_shows_its_place() -> None:
    with pytest.raises(CompileError) as error:
        value_of("true &&\n  foo")

    assert str(error.value) == "ERROR: <input>:2:3: undeclared reference to 'foo' (in container '')\n |   foo\n | ..^"


def test_names_count_one_functions_by_the_size_of_what_they_look_through() -> None:
    assert cost_of("true") == 0
    assert cost_of("x == 1", 1) == 2
    # Three steps to the attribute and one for the name of the variable; comparing four letters costs one.
    assert cost_of("device.attributes['gpu.example.com'].model == 'a100'") == 5
    assert cost_of(f"'{'a' * 100}'.contains('{'b' * 20}')") == 20
    assert cost_of("1 in [1, 2, 3]") == 13


def test_an_expression_that_costs_too_much_is_given_up() -> None:
    loop = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    text = "true"
    for name in "abcdefg":
        text = f"{loop}.all({name}, {text})"
    program = compile_expression(text, ENVIRONMENT)

    with pytest.raises(EvaluationError, match="operation cancelled: actual cost limit exceeded"):
        program.is_true(variables(), 10_000)
    with pytest.raises(EvaluationError, match="operation cancelled"):
        compile_expression(f"{text} || true", ENVIRONMENT).is_true(variables(), 10_000)


def test_long_and_deep_expressions_are_refused() -> None:
    with pytest.raises(CompileError, match="too long"):
        value_of("true" + " " * MAX_LENGTH)
    with pytest.raises(CompileError, match="nests deeper"):
        value_of("(" * (MAX_DEPTH + 1) + "true" + ")" * (MAX_DEPTH + 1))
    # A chain of conditions is no nest, but operators that are evaluated one after the other are.
    assert value_of(" && ".join(["true"] * 1_000))
    assert value_of("!" * 1_000 + "true")
    with pytest.raises(CompileError, match="nests deeper"):
        value_of(" + ".join(["1"] * 1_000) + " > 0")
    with pytest.raises(CompileError, match="nests deeper"):
        value_of(f"x{'.a' * 1_000} > 0")


def test_versions_are_ordered_as_semver_has_it() -> None:
    words = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0"]
    versions = [Semver.of(one) for one in words]

    assert sorted(versions, key=lambda one: one.order) == versions
