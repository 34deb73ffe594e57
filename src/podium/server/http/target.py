"""Where a request goes: its path and query, decoded."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from podium.store.errors import bad_request

_MOST_PARAMETERS = 1_000


def read_target(raw: str) -> tuple[str, list[tuple[str, str]]]:
    """The path and the query of what stands in a request's first line. Raises StoreError 400."""
    path, _, query = raw.partition("?")
    if path[:1] != "/":
        # Proxies are asked for whole addresses.
        path = "/" + path.partition("://")[2].partition("/")[2]
    if "%" in path:
        path = unquote(path)
    if not query:
        return path, []
    try:
        return path, parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise bad_request(f"the query has more than {_MOST_PARAMETERS} parameters") from None
