"""The parsers, by the names that verifiers give."""

from collections.abc import Mapping
from types import MappingProxyType

from muster.verify.findings.answers import FindingsAnswer, read_text
from muster.verify.tools import lines, mypy, pytest, ruff, sarif
from muster.verify.tools.lines import Parser, flawed


def parse(stdout: str, stderr: str, exit_code: int) -> FindingsAnswer:
    """Read a findings object, with a score, its parts or coverage where there are any."""
    said = read_text(stdout, None)
    return flawed(said.flaw, stdout) if said.flaw else said


# Codes with which a checker did not do its work, and its output says why in a form that its parser reads.
EXPLAINED: Mapping[str, tuple[int, ...]] = MappingProxyType({"pytest": (pytest.INTERRUPTED,)})

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        "ruff": ruff.parse,
        "mypy": mypy.parse,
        "pytest": pytest.parse,
        "sarif": sarif.parse,
        "json": parse,
        "lines": lines.parse,
    }
)
