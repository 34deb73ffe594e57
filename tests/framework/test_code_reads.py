"""The dependencies of a method, derived from its code, or taken to be everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.framework.simple_form import reads_alone

LIMIT = 7
known: dict[str, int] = {}


class OfTheNode:
    def counting(self, state: Any, pod: Any, node: Any) -> Any:
        return max(0, 100 - len(node.pods))

    def among_pods(self, state: Any, pod: Any, node: Any) -> Any:
        found = [each for each in node.pods if each.ready and each.priority > node.allowed_pods]
        return sum(each.terminating for each in found) + len({each.name: each for each in found})

    def with_a_key(self, state: Any, pod: Any, node: Any) -> str:
        names = sorted(node.labels, key=lambda label: (len(label), label))
        return names[0] if names else ""

    def failing(self, state: Any, pod: Any, node: Any) -> int:
        try:
            return int(node.labels["weight"])
        except (KeyError, ValueError):
            raise LookupError(f"{node.name} has no weight") from None


class OfMore:
    def __init__(self) -> None:
        self.asked = 0

    def of_the_pod(self, state: Any, pod: Any, node: Any) -> bool:
        return pod.name in node.name

    def of_the_pod_within(self, state: Any, pod: Any, node: Any) -> list[bool]:
        return [pod.name == other.name for other in node.pods]

    def of_the_state(self, state: Any, pod: Any, node: Any) -> Any:
        return state["seen"] or node.name

    def of_itself(self, state: Any, pod: Any, node: Any) -> int:
        return self.asked + len(node.pods)

    def noting(self, state: Any, pod: Any, node: Any) -> int:
        known[node.name] = 1
        return 0

    def of_the_module(self, state: Any, pod: Any, node: Any) -> int:
        return LIMIT - len(node.pods)

    def by_importing(self, state: Any, pod: Any, node: Any) -> float:
        import math  # noqa: PLC0415 - what a plugin may do

        return math.sqrt(len(node.pods))

    def of_what_is_outside(self, state: Any, pod: Any, node: Any) -> int:
        print(node.name)  # noqa: T201 - what a plugin may do
        return 0

    def of_a_default(self, state: Any, pod: Any, node: Any, seen: Any = None) -> int:
        return len(node.pods) + len(seen or ())

    def of_its_parent(self, state: Any, pod: Any, node: Any) -> Any:
        return super().__eq__(node)

    def of_locals(self, state: Any, pod: Any, node: Any) -> Any:
        return list(locals())

    def of_an_object(self, state: Any, pod: Any, node: Any) -> int:
        return hash(node) % 100

    def changing(self, state: Any, pod: Any, node: Any) -> int:
        node.labels["asked"] = "yes"
        return 0

    def of_any(self, *arguments: Any) -> int:
        return len(arguments)

    def given_piece_by_piece(self, state: Any, pod: Any, node: Any) -> Any:
        yield node.name


def around(limit: int) -> Callable[..., int]:
    def score(self: Any, state: Any, pod: Any, node: Any) -> int:
        return limit - len(node.pods)

    return score


@pytest.mark.parametrize("name", [name for name in vars(OfTheNode) if not name.startswith("_")])
def test_a_method_that_names_nothing_but_the_node_reads_it_alone(name: str) -> None:
    assert reads_alone(getattr(OfTheNode(), name), "node")


@pytest.mark.parametrize("name", [name for name in vars(OfMore) if not name.startswith("_")])
def test_a_method_that_names_anything_else_may_read_that(name: str) -> None:
    assert not reads_alone(getattr(OfMore(), name), "node")


def test_nothing_is_known_about_non_plain_methods() -> None:
    class Answering:
        def __call__(self, state: Any, pod: Any, node: Any) -> int:
            return 0

    assert not reads_alone(around(3), "node")
    assert not reads_alone(Answering(), "node")
    assert not reads_alone(len, "node")


def test_a_builtin_that_the_module_has_replaced_is_the_modules() -> None:
    module: dict[str, Any] = {"len": lambda _: 3}
    exec("def score(self, state, pod, node): return len(node.pods)", module)

    assert not reads_alone(module["score"], "node")
    del module["len"]
    assert reads_alone(module["score"], "node")
