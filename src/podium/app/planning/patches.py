"""Reading patches: parts of objects, which no rule of whole objects fits."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.errors import InputError
from podium.api.input import yaml
from podium.api.input.files import read_bytes, shown_name
from podium.api.meta import Raw


def read_patches(files: Sequence[str]) -> list[Raw]:
    """The documents of the files, YAML or JSON. Raises InputError for what is no object, and where there is none."""
    found: list[Raw] = []
    for file in files:
        name = shown_name(file)
        try:
            text = read_bytes(file).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-8: byte {error.start} does not fit; save it as UTF-8", source=name) from None
        try:
            documents = list(yaml.parse_documents(text))
        except InputError as error:
            raise error.located(source=name) from None
        for index, document in documents:
            if not isinstance(document, dict):
                raise InputError("is not an object", source=name, document=index)
            found.append(document)
    if not found:
        raise InputError("the files hold no patch")
    return found
