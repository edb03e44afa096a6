"""What a run is said to be about: one line from its spec, whatever that holds."""

from typing import Any

import pytest

from muster.app.views.subjects import MAX_SUBJECT, subject_of
from muster.domain.ids import RunId
from muster.domain.run import Lease, Run, RunState


def a_run(workload: str, spec: Any) -> Run:
    return Run(
        id=RunId("r"), workload=workload, spec=spec, state=RunState.COMPLETED, created_at=1.0, lease=Lease(epoch=1)
    )


@pytest.mark.parametrize(
    ("workload", "spec", "subject"),
    [
        ("ask", {"agent": "careful", "prompt": "Say hello\n\nand more"}, "careful: Say hello"),
        ("ask", {"agent": "a", "prompt": "Two\nlines"}, "a: Two lines"),
        ("task", {"prompt": "Write a README"}, "Write a README"),
        ("task", {"prompt": "---\n\n# Fix <b>the</b> **login**\n\nIt fails."}, "Fix the login"),
        ("battle", {"agent": "clerk", "counterpart": "guest", "goal": "A table is booked"}, "clerk: A table is booked"),
        ("battle", {"agent": "clerk", "counterpart": "guest", "user_message": "Hi"}, "clerk: Hi"),
        ("scale", {"battle": {"agent": "host"}, "goals": [{"goal": "A dog may come"}]}, "host: A dog may come"),
        ("scale", {"battle": {"agent": "host", "goal": "x"}, "agents": ["one", "two"]}, "one, two: x"),
        ("chain", {"chain": {"name": "release", "groups": []}}, "release"),
        ("deliberation", {"question": "Close on Mondays?", "members": []}, "Close on Mondays?"),
        ("suite", {"path": ["/srv/suites/help.yaml"], "agents": ["a", "b"]}, "a, b: help.yaml"),
        ("waves", {"root": "/srv", "files": ["shop/orders.py", "x.py"]}, "2 files: shop/orders.py"),
        ("generate", {"agent": "writer", "count": 3, "extend": "/srv/suites/help"}, "writer: help"),
        ("ask", {"agent": 7, "prompt": None}, None),
        ("scale", {"battle": None, "goals": 3}, None),
        ("waves", {"files": 3}, None),
        ("suite", [1, 2], None),
        ("mine", {"prompt": "a workload of the user's own"}, None),
    ],
)
def test_the_subject_is_what_a_spec_asks_for(workload: str, spec: Any, subject: str | None) -> None:
    assert subject_of(a_run(workload, spec)) == subject


def test_a_subject_is_short_and_has_no_secrets() -> None:
    key = "sk-" + "ant-api03-" + "A1b2C3d4" * 8
    found = subject_of(a_run("ask", {"agent": "a", "prompt": f"Use {key} for " + "long " * 1000})) or ""
    assert key[:20] not in found
    assert len(found) == MAX_SUBJECT
