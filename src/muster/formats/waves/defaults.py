"""The verification agents that are shipped: as a declaration, and as files for somebody who wants to change them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files

from muster.formats.waves.declaration import Declaration, read_declaration

NAME = "verify.yaml"
SHIPPED = "the shipped agents"  # how they are told where a file would be named
_PROMPTS = "prompts"


@cache
def shipped() -> Declaration:
    """Give the shipped agents; their model is what the file says when nobody else says anything."""
    with as_file(files("muster.formats.waves").joinpath("shipped")) as folder:
        found = read_declaration(folder / NAME)
    return replace(found, file=SHIPPED, model="", fallback=found.model)


def starter() -> Mapping[str, str]:
    """Give the shipped agents as files by their paths in a new folder."""
    folder = files("muster.formats.waves").joinpath("shipped")
    prompts = sorted(folder.joinpath(_PROMPTS).iterdir(), key=lambda file: file.name)
    texts = {f"{_PROMPTS}/{file.name}": file.read_text(encoding="utf-8") for file in prompts}
    return {NAME: folder.joinpath(NAME).read_text(encoding="utf-8"), **texts}
