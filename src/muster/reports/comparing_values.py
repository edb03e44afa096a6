"""A comparison as data, for programs."""

from typing import Any

import msgspec

from muster.reports.comparing import RunComparison, Side, SubjectComparison


def comparison_json(found: RunComparison) -> dict[str, Any]:
    """Give everything that is said as JSON."""
    return {
        "verdict": str(found.verdict),
        "ok": found.ok,
        "why": found.why,
        "a": _side(found.a),
        "b": _side(found.b),
        "notes": list(found.notes),
        "subjects": [_subject(one) for one in found.subjects],
    }


def _side(side: Side) -> dict[str, Any]:
    run = side.suite.run
    return {"name": side.name, "run": run.id, "run_name": run.name, "state": str(run.state), "subject": side.subject}


def _subject(one: SubjectComparison) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(one.comparison)
    found["cases_worse"], found["cases_better"] = found.pop("b"), found.pop("c")
    found["new"] = [{"case": case, "epoch": epoch} for case, epoch in one.comparison.new]
    return {"subject_a": one.before, "subject_b": one.after, **found}
