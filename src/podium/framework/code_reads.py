"""What a function's answer hangs on, as far as its code shows."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType, MethodType
from typing import Any

_ODD = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_GENERATOR | CO_VARARGS | CO_VARKEYWORDS
# Builtin functions whose answers hang on their arguments alone, and that change nothing.
_PLAIN = frozenset(
    (
        *("abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "frozenset", "getattr"),
        *("hasattr", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "pow"),
        *("range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip"),
    )
)
# Loads of local variables, some of them one of several things that an instruction does.
_OF_LOCALS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF")
# What makes or changes something that outlasts the call, or reads what others may change.
_REACHING_OUT = (
    "STORE_ATTR",
    "STORE_SUBSCR",
    "STORE_SLICE",
    "STORE_GLOBAL",
    "STORE_NAME",
    "STORE_DEREF",
    "DELETE_ATTR",
    "DELETE_SUBSCR",
    "DELETE_GLOBAL",
    "DELETE_NAME",
    "DELETE_DEREF",
    "IMPORT_",
    "LOAD_BUILD_CLASS",
    "LOAD_LOCALS",
    "LOAD_NAME",
    "LOAD_FROM_DICT_OR",
    "LOAD_SUPER",
    "GET_AWAITABLE",
)


def reads_alone(method: Callable[..., Any], argument: str) -> bool:
    """Whether a method's answers hang on one of its arguments alone, and on what can be read from that.

    So it is where the code names no other argument, nothing of its module and no variable around it, calls no builtin
    but those that are functions of their arguments, and sets nothing but variables of its own. Then the same argument
    has the same answer, or the same error. False stands for all that is not seen to be so.
    """
    function = method.__func__ if isinstance(method, MethodType) else method
    if not isinstance(function, FunctionType):
        return False
    code = function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _ODD or code.co_freevars or argument not in named:
        return False
    others = frozenset(named) - {argument}
    return all(_is_plain(each, others, function.__globals__) for each in _codes(code))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_plain(code: CodeType, others: frozenset[str], module: dict[str, Any]) -> bool:
    """Whether code names none of the ``others``, and nothing of the module.

    Variables of functions within that bear the name of one of the others are taken for these.
    """
    for instruction in dis.get_instructions(code):
        name, subject = instruction.opname, instruction.argval
        if name.startswith(_REACHING_OUT):
            return False
        if name.startswith("LOAD_GLOBAL") and not _is_plain_builtin(subject, module):
            return False
        subjects = subject if isinstance(subject, tuple) else (subject,)
        if any(load in name for load in _OF_LOCALS) and not others.isdisjoint(subjects):
            return False
    return True


def _is_plain_builtin(name: str, module: dict[str, Any]) -> bool:
    found = None if name in module else getattr(builtins, name, None)
    return name in _PLAIN or (isinstance(found, type) and issubclass(found, Exception)) if found is not None else False
