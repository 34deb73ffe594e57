"""The file with the token that clients must send."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.api.errors import InputError
from podium.server.http.security import read_token

TOKEN = "0123456789abcdef"


def test_a_token_is_read_from_a_file_of_its_owners_alone_unless_it_is_shared(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f" {TOKEN}\n")
    file.chmod(0o640)

    with pytest.raises(InputError, match="others than its owner"):
        read_token(str(file))
    assert read_token(str(file), is_shared=True) == TOKEN
    file.chmod(0o600)
    assert read_token(str(file)) == TOKEN


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "one token is needed"),
        (f"{TOKEN} {TOKEN}".encode(), "one token is needed"),
        (b"x" * 5_000, "one token is needed"),
        (TOKEN[1:].encode(), "less than 16 letters"),
        (None, "cannot be read: No such file"),
    ],
)
def test_an_invalid_token_is_reported_without_its_text(content: bytes | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)

    with pytest.raises(InputError) as caught:
        read_token(str(file))

    assert problem in str(caught.value)
    assert TOKEN[1:] not in str(caught.value)
