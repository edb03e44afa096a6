"""What belongs to a project as JSON: diagnoses, validated files, new folders, the git hook, exceptions for secrets."""

from typing import Any

from muster.app.doctor import Diagnosis, DoctorReport, NetworkDiagnosis
from muster.app.project.files import CreatedFolder
from muster.app.project.validation import Linted, Validated
from muster.app.verify.secrets import Allowed, Installed
from muster.app.views.chains import chain_inspection_view
from muster.app.views.councils import council_inspection_view
from muster.app.views.suites import examination_view, flaw_view
from muster.verify.declaration.declaration import Inspection


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


def validated_view(found: Validated) -> dict[str, Any]:
    """Return suites, verification agents and chains that were checked as JSON."""
    return {
        "suites": [examination_view(file, examination) for file, examination in found.suites.items()],
        "verifications": [inspection_view(inspection) for inspection in found.verifications],
        "chains": [chain_inspection_view(inspection) for inspection in found.chains],
        "councils": [council_inspection_view(inspection) for inspection in found.councils],
    }


def linted_view(found: Linted) -> dict[str, Any]:
    """Return what is doubtful in suites as JSON; with what is wrong, if anything is."""
    flaws = {"flaws": [flaw_view(flaw) for flaw in found.flaws]} if found.flaws else {}
    return {"suites": list(found.suites), "findings": [flaw_view(finding) for finding in found.findings], **flaws}


def inspection_view(inspection: Inspection) -> dict[str, Any]:
    """Return what is wrong in a verify.yaml as JSON."""
    found = inspection.declaration
    return {
        "file": inspection.file,
        "agents": [] if found is None else [{"name": agent.name, "wave": agent.wave} for agent in found.agents],
        "flaws": [flaw_view(flaw) for flaw in inspection.flaws],
    }


def created_view(done: CreatedFolder) -> dict[str, Any]:
    """Return a folder that was made as JSON."""
    return {"folder": str(done.folder), "kind": done.kind, "files": [path.as_posix() for path in done.files]}


def hook_view(done: Installed) -> dict[str, Any]:
    """Return a git hook that was installed as JSON."""
    return {
        "hook": str(done.path),
        "kept": None if done.kept is None else str(done.kept),
        "command": list(done.command),
    }


def allowed_view(done: Allowed) -> dict[str, Any]:
    """Return exceptions for secrets that were written as JSON."""
    return {
        "declaration": str(done.declaration),
        "allowed": [{"file": one.file, "line": one.line, "kind": one.kind} for one in done.secrets],
    }
