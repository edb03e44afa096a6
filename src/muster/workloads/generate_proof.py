"""Proof that a suite file can be read: what is there, and whether a new case would be taken like any other."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.domain.case import Case
from muster.domain.errors import BadArgument
from muster.formats.finding import find_suites
from muster.formats.suite import Suite, examine, open_suite
from muster.workloads.generate_draft import Rejected, asked_in


def prove(skill: str, case: Mapping[str, Any]) -> None:
    """Raise Rejected unless the case is read back from a suite file as it was meant."""
    suite = {"schema_version": 1, "skill_or_agent": skill, "cases": [case]}
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        path = Path(folder) / "cases.yaml"
        path.write_text(json.dumps(suite, ensure_ascii=False), encoding="utf-8")  # JSON is YAML
        examined = examine(path)
        for flaw in (*examined.flaws, *examined.doubts):  # what a suite in use may have, a new one need not
            raise Rejected("invalid", flaw.message)
        found = list(open_suite(path).cases())
    if [each.id for each in found] != [case["id"]] or spoken(found[0]) != asked_in(case):
        raise Rejected("invalid", "it is read back otherwise than it was written")


def the_suite(folder: str) -> Suite:
    """Open the one suite of a folder."""
    paths = find_suites([Path(folder)])
    if len(paths) != 1:
        names = ", ".join(str(path) for path in paths)
        raise BadArgument(
            f"{folder} has {len(paths)} suites: {names}" if paths else f"there is no suite in {folder}",
            suggestions=("name the file of one suite",),
        )
    return open_suite(paths[0])


def spoken(case: Case) -> str:
    """Give all that is asked in a case, to be compared."""
    return "\n".join(message.text for message in case.messages)
