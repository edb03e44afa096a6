"""Our own findings object, as models give it: for checkers that somebody writes for Muster."""

from muster.checks.findings.answer import read_text
from muster.checks.tool_output.parsed import Parsed, flawed


def parse(stdout: str, stderr: str, exit_code: int) -> Parsed:
    """Read a findings object, with a score, its parts or coverage where there are any."""
    said = read_text(stdout, None)
    if said.flaw:
        return flawed(said.flaw, stdout)
    return Parsed(findings=said.findings, score=said.score, parts=said.parts, coverage=said.coverage)
