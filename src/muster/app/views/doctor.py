"""What the doctor found as JSON."""

from typing import Any

from muster.app.doctor import Diagnosis, DoctorReport, NetworkDiagnosis


def doctor_view(report: DoctorReport) -> dict[str, Any]:
    """Return all that was found as JSON."""
    network = report.network
    return {
        "usable": not report.broken,
        "findings": [diagnosis_view(found) for found in report.findings],
        "network": None if network is None else _network_view(network),
    }


def diagnosis_view(found: Diagnosis) -> dict[str, Any]:
    """Return the outcome of one check as JSON."""
    return {
        "subject": found.subject,
        "state": found.state,
        "words": found.words,
        "suggestions": [*found.suggestions],
    }


def _network_view(found: NetworkDiagnosis) -> dict[str, Any]:
    return diagnosis_view(found) | {
        "proxies": dict(found.proxies),
        "no_proxy": [*found.direct],
        "certificates": [*found.certificates],
    }
