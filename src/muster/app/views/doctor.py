"""What the doctor found as JSON."""

from typing import Any

from muster.app.doctor import Diagnosis


def diagnosis_view(found: Diagnosis) -> dict[str, Any]:
    """Return the outcome of one check as JSON."""
    return {
        "subject": found.subject,
        "state": found.state,
        "words": found.words,
        "suggestions": [*found.suggestions],
    }
