"""Where policies come from, as plugins do: Podium's own, classes that the configuration names, and entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.api.errors import InputError, PodiumError, shown
from podium.cluster.cluster import Cluster
from podium.framework.errors import PluginError, is_failure
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Policy
from podium.framework.rescheduling.settings import PolicySettings
from podium.framework.settings.classes import find_class, maker_of, methods_of, require_name

PolicyFactory = Callable[[PluginContext], Policy]

ENTRY_POINT_GROUP = "podium.policies"


class PolicyRegistry:
    """Finds the factory of a policy by its name in the configuration.

    ``in_tree`` comes first. A name like ``package.module:Class`` is a class in an importable module; any other is
    looked up among the entry points of the group ``podium.policies``. The constructor of a class found in either way
    takes a `PluginContext` or nothing; a class without a ``name`` is given its own as an attribute.
    """

    def __init__(self, in_tree: Mapping[str, PolicyFactory]) -> None:
        self._in_tree = dict(in_tree)

    def resolve(self, name: str) -> PolicyFactory:
        """The factory of a policy. Raises PluginError for an unknown name, and for code that cannot be used."""
        known = self._in_tree.get(name)
        if known is not None:
            return known
        return _factory(find_class(name, "policy", ENTRY_POINT_GROUP, self._in_tree))


def make_policies(
    settings: Sequence[PolicySettings], registry: PolicyRegistry, cluster: Cluster, seed: int = 0
) -> tuple[tuple[Policy, float], ...]:
    """The policies of a configuration, in its order, each with its weight.

    Raises InputError, which names the policy and the field in it, for one that is not found, fails while it is made,
    refuses its arguments or lacks what a policy has, and for two of one name.
    """
    made: list[tuple[Policy, float]] = []
    names: set[str] = set()
    for written in settings:
        policy = _made(written, registry, PluginContext(written.args, cluster, seed=seed))
        if policy.name in names:
            raise _error(written, f"two policies are called {shown(policy.name)}; leave one out")
        names.add(policy.name)
        made.append((policy, written.weight))
    return tuple(made)


def _made(written: PolicySettings, registry: PolicyRegistry, context: PluginContext) -> Policy:
    try:
        policy = registry.resolve(written.name)(context)
        require_name(policy)
    except InputError as error:
        raise InputError(error.problem, object=_label(written), path=f".args{error.path}") from error
    except PodiumError as error:
        raise _error(written, str(error)) from error
    except BaseException as error:
        if not is_failure(error):
            raise
        raise _error(written, f"it failed while it was made: {type(error).__name__}: {error}") from error
    return policy


def _factory(made: type[Any]) -> PolicyFactory:
    """What makes an instance of a class that is written as a policy."""
    lacks = [method for method in methods_of(Policy) if not callable(getattr(made, method, None))]
    if lacks:
        raise PluginError(f"class {made.__name__} is no policy: it has no method {' and no method '.join(lacks)}")
    return maker_of(made, Policy)


def _error(written: PolicySettings, problem: str) -> InputError:
    return InputError(problem, object=_label(written), path=".name")


def _label(written: PolicySettings) -> str:
    return f"policy {written.name}"
