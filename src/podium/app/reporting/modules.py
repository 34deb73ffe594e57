"""The page's modules as one script.

They are plain ECMAScript modules, which a browser also loads one by one from a server. A file that opens from disk may
load nothing, so that they are put together: each in a function of its own, in the order in which they need one another.
Only the forms of `import` and `export` are known that the page uses; any other raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) ([A-Za-z_$][\w$]*))", re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """One script of the module `entry` and all that it needs; `read` gives the text of the module of a name.

    Raises ValueError for an import or export of another form, and for modules that need one another in a circle.
    """
    done: dict[str, str] = {}
    _add(entry, read, done, ())
    return '"use strict";\n' + "".join(done.values())


def _add(name: str, read: Callable[[str], str], done: dict[str, str], needed_by: tuple[str, ...]) -> None:
    """Put a module behind those that it needs."""
    if name in done:
        return
    if name in needed_by:
        raise ValueError(f"modules need one another in a circle: {' > '.join((*needed_by, name))}")
    text = read(name)
    for _, other in _IMPORT.findall(text):
        _add(other, read, done, (*needed_by, name))
    done[name] = _wrapped(name, text)


def _wrapped(name: str, text: str) -> str:
    """A module as a value: an object of what it exports."""
    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub(_taken, text))
    strange = _UNKNOWN.search(body)
    if strange is not None:
        raise ValueError(f"{name}.js: {strange[0]!r} is a form of import or export that is not known here")
    return f"const module_{name} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();\n"


def _taken(found: re.Match[str]) -> str:
    return f"const {{{found[1]}}} = module_{found[2]};\n"
