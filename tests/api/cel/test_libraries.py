"""The CEL libraries for times, addresses, URLs, formats, optional values and two-variable loops agree with
upstream's.
"""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.cel.compiler import Declaration, compile_expression
from podium.api.cel.types import DurationValue, Timestamp
from podium.api.cel.values import NONE, CompileError, EvaluationError, Optional

ENVIRONMENT = {name: Declaration("dyn") for name in ("x", "none", "some")}
X = {"a": {"b": 1}, "list": (1, 2, 3), "from": Timestamp.of("2026-01-31T09:30:00Z"), "took": DurationValue.of("90s")}


def is_true(text: str, limit: int = 10**6) -> bool:
    values: dict[str, Any] = {"x": X, "none": NONE, "some": Optional({"a": 5})}
    return compile_expression(text, ENVIRONMENT).is_true(values, limit)


TIMES = [
    "timestamp('2026-01-31T09:30:00Z') < timestamp('2026-01-31T09:30:00.5Z')",
    "timestamp('2026-01-31T11:30:00+02:00') == timestamp('2026-01-31T09:30:00Z')",
    "timestamp('1900-01-01T00:00:00Z') < timestamp(0)",
    "timestamp('2026-01-31T09:30:00Z') - timestamp('2026-01-31T09:00:00Z') == duration('30m')",
    "timestamp('2026-01-31T09:30:00Z') + duration('1h') == timestamp('2026-01-31T10:30:00Z')",
    "duration('1h') + timestamp(0) - duration('60m') == timestamp(0)",
    "duration('1h30m').getHours() == 1 && duration('1h30m').getMinutes() == 90",
    "duration('-90s').getMinutes() == -1 && -duration('90s') == duration('-1m30s')",
    "duration('1.5s').getMilliseconds() == 1500 && duration('1.5s').getSeconds() == 1",
    "duration('250ms') <= duration('0.25s') && duration('0') == duration('0s')",
    "string(duration('1h0.25s')) == '3600.25s' && string(timestamp(1)) == '1970-01-01T00:00:01Z'",
    "string(timestamp('2026-01-31T09:30:00.250Z')) == '2026-01-31T09:30:00.25Z'",
    "int(timestamp('1970-01-01T00:01:00Z')) == 60 && int(duration('1s')) == 1000000000",
    "timestamp('2026-01-31T09:30:07.25Z').getFullYear() == 2026",
    "x.from.getMonth() == 0 && x.from.getDate() == 31 && x.from.getDayOfMonth() == 30",
    "x.from.getDayOfWeek() == 6 && x.from.getDayOfYear() == 30 && x.from.getHours() == 9",
    "x.from.getHours('+02:30') == 12 && x.from.getMinutes('-00:45') == 45 && x.from.getSeconds() == 0",
    "timestamp('2026-01-31T09:30:07.25Z').getMilliseconds() == 250",
    "x.took > duration('1m') && x.took in [duration('90s')]",
    "type(x.took) == google.protobuf.Duration",
]
ADDRESSES = [
    "isIP('10.0.0.1') && isIP('2001:db8::1') && !isIP('10.0.0.256') && !isIP('10.0.0.01')",
    "!isIP('::ffff:10.0.0.1') && !isIP('fe80::1%eth0') && !isIP('10.0.0.1/8') && !isIP('')",
    "ip('10.0.0.1').family() == 4 && ip('::1').family() == 6",
    "ip('::1').isLoopback() && ip('127.0.0.8').isLoopback() && ip('0.0.0.0').isUnspecified()",
    "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
    "ip('224.0.0.7').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
    "!ip('224.0.1.7').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
    "ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast() && !ip('::1').isGlobalUnicast()",
    "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD') && !ip.isCanonical('2001:db8:0::1')",
    "ip('10.0.0.1') == ip('10.0.0.1') && string(ip('2001:DB8::1')) == '2001:db8::1'",
    "isCIDR('10.0.0.0/8') && isCIDR('::/0') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/08')",
    "cidr('10.0.0.0/8').containsIP('10.9.9.9') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "!cidr('10.0.0.0/8').containsIP('::1')",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('10.0.0.7/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.7/8').ip() == ip('10.0.0.7')",
    "cidr('2001:db8::/32').prefixLength() == 32 && string(cidr('2001:db8::/32')) == '2001:db8::/32'",
]
URLS = [
    "isURL('https://example.com') && isURL('/path') && isURL('mailto:me') && !isURL('../path') && !isURL('')",
    "!isURL('https://a:b.c/') && !isURL('https://a b/') && !isURL('https://a/%zz') && isURL('https://[::1]:80/a')",
    "url('https://example.com:8080/a/b?c=d').getScheme() == 'https'",
    "url('https://example.com:8080/a').getHost() == 'example.com:8080'",
    "url('https://u:p@example.com:8080/a').getHostname() == 'example.com' && url('https://a/').getPort() == ''",
    "url('https://example.com:8080/').getPort() == '8080' && url('https://[::1]:80/').getHostname() == '::1'",
    "url('https://[::1]/').getHostname() == '::1' && url('/only').getHost() == ''",
    "url('https://example.com/with space/'.replace(' ', '%20')).getEscapedPath() == '/with%20space/'",
    "url('https://e.com/?a=1&b=2&a=3%20x').getQuery() == {'a': ['1', '3 x'], 'b': ['2']}",
    "url('https://example.com') == url('HTTPS://example.com')",
]
FORMATS = [
    "!format.dns1123Label().validate('my-label').hasValue()",
    "format.dns1123Label().validate('My_Label').hasValue()",
    "format.dns1123Label().validate('My_Label').value().size() == 1",
    "!format.dns1123LabelPrefix().validate('my-').hasValue()",
    "!format.dns1123Subdomain().validate('a.b').hasValue() && format.dns1035Label().validate('1a').hasValue()",
    "!format.qualifiedName().validate('example.com/name').hasValue()",
    "!format.labelValue().validate('A_b').hasValue() && format.labelValue().validate('a b').hasValue()",
    "!format.uri().validate('https://a').hasValue() && format.uri().validate('a').hasValue()",
    "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
    "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('a').hasValue()",
    "!format.date().validate('2026-01-31').hasValue() && format.date().validate('2026-02-31').hasValue()",
    "!format.datetime().validate('2026-01-31T00:00:00Z').hasValue() && format.datetime().validate('1').hasValue()",
    "format.named('uuid').value() == format.uuid() && !format.named('telephone').hasValue()",
    "'%s is %d of %d, %.1f%%'.format(['web', 3, 4, 75.0]) == 'web is 3 of 4, 75.0%'",
    "'%x %X %o %b'.format([255, 255, 8, 5]) == 'ff FF 10 101' && '%x'.format(['ab']) == '6162'",
    "'%s'.format([[1, true, null, {'b': 1.5, 'a': 'c'}]]) == '[1, true, null, {a: c, b: 1.5}]'",
    "'%s %s'.format([duration('1m'), timestamp(0)]) == '60s 1970-01-01T00:00:00Z'",
    "'%e'.format([1234.5]) == '1.234500e+03' && 'none'.format([]) == 'none'",
    r"strings.quote('a\"b\n') == '\"a\\\"b\\n\"'",
]
OPTIONALS = [
    "x.?a.hasValue() && !x.?nothing.hasValue() && !x.?nothing.b.c.hasValue()",
    "x.?a.b.value() == 1 && x.?a.?b == optional.of(1) && x.?nothing == optional.none()",
    "x.?nothing.orValue('z') == 'z' && x.?a.?b.orValue(9) == 1",
    "x.list[?1].value() == 2 && !x.list[?9].hasValue() && x[?'a'].b.value() == 1 && !x[?'b'].hasValue()",
    "x.?nothing.or(x.?a).b.value() == 1 && x.?a.or(optional.none()).hasValue()",
    "x.?a.?b.optMap(n, n + 1).value() == 2 && !x.?no.optMap(n, n + 1).hasValue()",
    "x.?a.optFlatMap(a, a.?b).value() == 1",
    "!none.hasValue() && some.a.value() == 5 && has(some.a) && !has(none.a)",
    "none.orValue({'a': 1}).a == 1 && some.optMap(s, s.a > 4).orValue(false)",
    "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue(1).value() == 1",
    "'.?' == '.' + '?' && '[?' != ''  // a mark .? in a comment, and [? too",
    "(true ? x.?a : x.?b).hasValue()",
    "x . ? a . hasValue() && x[ ? ('a') ].hasValue()",
    "[?x.?nothing, 0, ?x.?a.?b, ?optional.none()] == [0, 1] && [?x.?nothing] == []",
    "{?'a': x.?a.?b, 'b': 2, ?x.list[1] > 1 ? 'c' : 'd': optional.none()} == {'a': 1, 'b': 2}",
    "[optional.none(), ?optional.of(optional.none())].all(item, !item.hasValue())",
]
LOOPS = [
    "[1, 2, 3].all(i, v, v == i + 1) && {'a': 1}.all(k, v, k == 'a' && v == 1)",
    "[1, 2, 3].exists(i, v, i == 2 && v == 3) && !{'a': 1}.exists(k, v, v > 1)",
    "[5, 6].existsOne(i, v, i == 0) && ![5, 6].exists_one(i, v, v > 1)",
    "[5, 6].transformList(i, v, i * v) == [0, 6] && [5, 6].transformList(i, v, v > 5, i) == [1]",
    "{'a': 1, 'b': 2}.transformMap(k, v, v * 2) == {'a': 2, 'b': 4}",
    "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k) == {'b': 'b'}",
    "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
    "[[1], [2]].all(i, row, row.all(j, v, j == 0 && v == i + 1))",
]


@pytest.mark.parametrize("text", [*TIMES, *ADDRESSES, *URLS, *FORMATS, *OPTIONALS, *LOOPS])
def test_boolean_expressions_evaluate_to_true(text: str) -> None:
    assert is_true(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("timestamp('soon') == timestamp(0)", "cannot parse 'soon' as a time"),
        ("timestamp('2026-02-30T00:00:00Z') == timestamp(0)", "is not a time"),
        ("timestamp(253402300800) == timestamp(0)", "timestamp overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)", "timestamp overflow"),
        ("timestamp('9999-12-31T23:59:59Z').getHours('+01:00') == 0", "timestamp overflow"),
        ("timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z') == x.took", "duration overflow"),
        ("x.from.getHours('Europe/Paris') == 10", "the time zone 'Europe/Paris' is not known here"),
        ("duration('90') == x.took", "invalid duration '90'"),
        ("duration('300000h') + duration('2562047h') == x.took", "duration overflow"),
        ("ip('10.0.0') == ip('10.0.0.1')", "IP Address '10.0.0' parse error"),
        ("cidr('10.0.0.0/99') == cidr('10.0.0.0/9')", "network address parse error"),
        ("url('a b').getHost() == ''", "URL parse error during conversion"),
        ("none.value() == 1", "optional.none() dereference"),
        ("x.took.?a.hasValue()", "no such overload"),
        ("'%d'.format(['a']) == ''", "%d can not be used on string"),
        ("'%d'.format([]) == ''", "index 0 out of range"),
        ("'50 %'.format([]) == ''", "could not parse formatting clause"),
        ("{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}) == {}", "key 1 already exists"),
        ("[?x.a] == []", "no such overload"),
        ("{'a': 1, ?'a': x.?b} == {}", "repeated key: a"),
        ("x.all(k, v, v)", "no such overload"),
    ],
)
def test_an_expression_without_value_is_an_error_not_false(text: str, error: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        is_true(text)
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("duration('1s') < 1", "found no matching overload for '_<_'"),
        ("duration('1s') + 1 == 2", "found no matching overload for '_+_'"),
        ("ip('::1').getScheme() == ''", "found no matching overload for 'getScheme'"),
        ("[?1] == []", "expected type 'optional_type' but found 'int'"),
        ("{?'a': 'b'} == {}", "expected type 'optional_type' but found 'string'"),
        ("size(?x.?a) == 1", "Syntax error: mismatched input '?'"),
        ("[1].all(i, i, true)", "the variables of a loop must differ"),
        ("[1].all(i, 1, true)", "argument must be a simple name"),
        ("'a'.all(i, v, true)", "cannot be range of a comprehension"),
        ("image('a').registry() == ''", "undeclared reference to 'registry'"),
        ("x.?", "Syntax error"),
        ("format.telephone() == 1", "undeclared reference to 'telephone'"),
    ],
)
def test_an_expression_that_can_never_have_a_value_is_rejected_at_compilation(text: str, error: str) -> None:
    with pytest.raises(CompileError) as caught:
        is_true(text)
    assert error in str(caught.value)


def test_a_compile_error_after_an_optional_field_names_its_place() -> None:
    with pytest.raises(CompileError) as caught:
        is_true("x.?a.hasValue() && foo")
    assert "<input>:1:20: undeclared reference to 'foo'" in str(caught.value)


def test_loops_within_loops_cost_what_they_take() -> None:
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        is_true("x.list.all(a, b, x.list.all(c, d, x.list.all(e, f, true)))", limit=60)


def test_long_unterminated_expressions_are_rejected_quickly() -> None:
    for text in ("'" * 9_000, '"""' * 3_000, ".?" * 4_000, "[?" * 4_000, "x.?" + " " * 9_000):
        with pytest.raises(CompileError):
            is_true(text)
