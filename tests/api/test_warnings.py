from typing import Any

import pytest

from podium.api.errors import InputError, InputWarning
from podium.api.objects import read_object


def test_a_warning_follows_its_place() -> None:
    warning = InputWarning("there is no such field", "unknown-field", object="Pod default/web", path=".spec.nodeNaem")

    located = warning.located(source="web.yaml", document=2, object="another")

    assert str(located) == "web.yaml, document 2, Pod default/web, .spec.nodeNaem: there is no such field"


def test_strict_refuses_what_kubernetes_does_not_take_and_nothing_else() -> None:
    raw: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    for wrong in ({"nodeNaem": "n"}, {"dnsPolicy": "Sometimes", "containers": [{"name": "a", "image": "b"}]}):
        with pytest.raises(InputError, match="Pod default/a, "):
            read_object({**raw, "spec": {**raw["spec"], **wrong}}, "strict")

    requests = {"cpu": "500", "memory": "1"}
    slip = {"containers": [{"name": "a", "image": "b", "resources": {"requests": requests}}]}
    assert [found.reason for found in read_object({**raw, "spec": slip}, "strict").warnings] == ["slip", "slip"]


def test_a_warning_is_one_line_with_control_characters_escaped() -> None:
    warning = InputWarning("\x1b[31mred\n", "slip", source="a\nb.yaml")

    assert str(warning).isprintable()
