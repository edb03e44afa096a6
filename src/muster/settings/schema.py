"""A JSON Schema of muster.toml for editors, made from the sections that read it."""

from pathlib import Path
from typing import Any

import msgspec

from muster.settings.file import BudgetSection, Configuration, VerifySection, WorkloadsSection
from muster.settings.sections import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PARTS = {"budget": BudgetSection, "workloads": WorkloadsSection, "verify": VerifySection}


def toml_schema() -> dict[str, Any]:
    """Return the schema of muster.toml."""
    agents = list(dict.fromkeys(KINDS.values()))
    shown, definitions = msgspec.json.schema_components(
        [*agents, *PARTS.values()], schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    parts = dict(zip(PARTS, shown[len(agents) :], strict=True))
    kinds = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": list(KINDS)}}}
    properties = {"agents": {"type": "object", "additionalProperties": kinds | {"oneOf": list(shown[: len(agents)])}}}
    return {
        "$schema": DIALECT,
        "title": "muster.toml",
        "type": "object",
        "properties": {name: (properties | parts)[name] for name in Configuration.__struct_fields__},
        "additionalProperties": False,
        "$defs": definitions,
    }


def _hook(kind: type) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string"}
    raise NotImplementedError(kind)  # as msgspec wants it from a hook that does not know a type
