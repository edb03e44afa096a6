"""The parsers, by the names that verifiers give."""

from collections.abc import Mapping
from types import MappingProxyType

from muster.checks.tool_output import lines, mypy, own_json, pytest, ruff, sarif
from muster.checks.tool_output.parsed import Parser

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        "ruff": ruff.parse,
        "mypy": mypy.parse,
        "pytest": pytest.parse,
        "sarif": sarif.parse,
        "json": own_json.parse,
        "lines": lines.parse,
    }
)
