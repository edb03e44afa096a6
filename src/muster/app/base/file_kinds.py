"""Which kind of file a file is, seen without parsing it: a suite, a chain, a council, or verification agents."""

import re
from pathlib import Path

from muster.domain.errors import BadFile
from muster.text.document_tree import Unreadable
from muster.text.documents.readers import READERS
from muster.text.files import byte_lines, opened, shown

# A file with such a name is of this kind.
SUITE_STEM, CHAIN_STEM, VERIFY_STEM, COUNCIL_STEM = "cases", "chain", "verify", "council"

_MAX_LINE = 4_000_000
# At the top of YAML, of YAML written as JSON, and of TOML; `[agents.NAME]` is how muster.toml declares others.
_AGENTS = re.compile(rb"(?:\{?\s*)[\"']agents[\"']\s*:|agents\s*:|\s*\[\[\s*agents\s*\]\]")
# Members of a council name their agent; verification agents have a name of their own.
_MEMBER = re.compile(rb"(?:[^#\n]*[\s{,\[])?[\"']?agent[\"']?\s*[:=]")
_STEPS = re.compile(rb"(?:\{?\s*)[\"']steps[\"']\s*:|steps\s*:|\s*\[\[\s*steps\s*\]\]")
_CASES = re.compile(rb"(?:\{?\s*)[\"']cases[\"']\s*:|cases\s*:|\s*\[\[\s*cases\s*\]\]")


def is_suite(file: Path) -> bool:
    """Return whether a file is a suite: by its name, or by cases at its top."""
    return _is_readable(file) and (file.stem.lower() == SUITE_STEM or _has(file, _CASES))


def is_chain(file: Path) -> bool:
    """Return whether a file is a chain: by its name, or by steps and neither cases nor agents of its own at its top."""
    if not _is_readable(file):
        return False
    return file.stem.lower() == CHAIN_STEM or (_has(file, _STEPS) and not _has(file, _CASES))


def is_declaration(file: Path) -> bool:
    """Return whether a file declares verification agents: by its name, or by agents and no cases at its top."""
    if not _is_readable(file) or is_council(file):
        return False
    return file.stem.lower() == VERIFY_STEM or (_has(file, _AGENTS) and not _has(file, _CASES))


def is_council(file: Path) -> bool:
    """Return whether a file is the policy of a council: by its name, or by agents at its top that name an agent."""
    if not _is_readable(file) or file.stem.lower() == VERIFY_STEM:
        return False
    if file.stem.lower() == COUNCIL_STEM:
        return True
    return _has(file, _AGENTS) and _has(file, _MEMBER) and not _has(file, _CASES) and not _has(file, _STEPS)


def require_suite(file: Path) -> None:
    """Raise BadFile for a chain or verification agents in place of a suite; says which command takes them."""
    if is_suite(file):
        return
    if is_chain(file):
        raise BadFile(shown(file), "is a chain, not a suite", suggestions=(f"muster chain run {file}",))
    if is_council(file):
        ways = (f'muster council "QUESTION" --policy {file}',)
        raise BadFile(shown(file), "is the policy of a council, not a suite", suggestions=ways)
    if is_declaration(file):
        ways = (f"muster verify PATH… --agents {file}",)
        raise BadFile(shown(file), "declares verification agents; it is not a suite", suggestions=ways)


def require_chain(file: Path) -> None:
    """Raise BadFile for a suite in place of a chain; says which command takes it."""
    if is_suite(file) and not is_chain(file):
        raise BadFile(shown(file), "is a suite, not a chain", suggestions=(f"muster run {file} --agent AGENT",))


def _is_readable(file: Path) -> bool:
    return file.suffix.lower() in READERS and file.is_file()


def _has(file: Path, key: re.Pattern[bytes]) -> bool:
    try:
        with opened(file) as stream:
            return any(key.match(line) for line in byte_lines(stream, _MAX_LINE))
    except Unreadable:
        return False
