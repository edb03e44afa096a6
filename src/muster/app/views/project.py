"""What belongs to a project: diagnoses, validated files, new folders, the git hook, exceptions for secrets."""

from collections.abc import Mapping, Sequence

from muster.agents.model_list import OfferedModel
from muster.app.project.diagnosis import Diagnosis, DoctorReport, NetworkDiagnosis
from muster.app.project.files import CreatedFolder
from muster.app.project.validation import Linted, Validated
from muster.app.verify.secrets import Allowed, Installed
from muster.app.views.chains import ChainInspectionView, chain_inspection_view
from muster.app.views.councils import CouncilInspectionView, council_inspection_view
from muster.app.views.flaws import ExaminationView, FlawView, examination_view, flaw_view
from muster.text.views import UNSET, UnsetType, View, asdict
from muster.verify.declaration.declaration import Inspection


class OfferedModelView(View):
    """A model that a provider offers; prices are dollars for a million tokens, as far as they are known."""

    id: str
    name: str
    created: str
    context_tokens: int | None
    max_output_tokens: int | None
    input_usd: float | None
    output_usd: float | None


def offered_model_view(model: OfferedModel) -> OfferedModelView:
    """Return a model that a provider offers."""
    rates = None if model.price is None else model.price.base
    return OfferedModelView(
        id=model.id,
        name=model.title,
        created=model.created,
        context_tokens=model.context_tokens,
        max_output_tokens=model.max_output_tokens,
        input_usd=None if rates is None else float(rates.input),
        output_usd=None if rates is None else float(rates.output),
    )


class DiagnosisView(View):
    """The outcome of one check."""

    subject: str
    state: str
    words: str
    suggestions: Sequence[str]


class NetworkDiagnosisView(DiagnosisView):
    """The outcome of the check of the network, with what was found of it."""

    proxies: Mapping[str, str | None]
    no_proxy: Sequence[str]
    certificates: Sequence[str]


class DoctorView(View):
    """All that was checked on a machine."""

    usable: bool
    findings: Sequence[DiagnosisView]
    network: NetworkDiagnosisView | None


class VerifierView(View):
    """A verification agent, and its wave."""

    name: str
    wave: int


class InspectionView(View):
    """What is wrong in a verify.yaml."""

    file: str
    agents: Sequence[VerifierView]
    flaws: Sequence[FlawView]


class ValidatedView(View):
    """Suites, verification agents, chains and councils that were checked."""

    suites: Sequence[ExaminationView]
    verifications: Sequence[InspectionView]
    chains: Sequence[ChainInspectionView]
    councils: Sequence[CouncilInspectionView]


class LintedView(View):
    """What is doubtful in suites; with what is wrong, if anything is."""

    suites: Sequence[str]
    findings: Sequence[FlawView]
    flaws: Sequence[FlawView] | UnsetType = UNSET


class CreatedFolderView(View):
    """A folder that was made."""

    folder: str
    kind: str
    files: Sequence[str]


class HookView(View):
    """A git hook that was installed."""

    hook: str
    kept: str | None
    command: Sequence[str]


class AllowedSecretView(View):
    """A place at which a secret is allowed."""

    file: str
    line: int
    kind: str


class AllowedView(View):
    """Exceptions for secrets that were written."""

    declaration: str
    allowed: Sequence[AllowedSecretView]


def doctor_view(report: DoctorReport) -> DoctorView:
    """Return all that was checked on a machine."""
    return DoctorView(
        usable=not report.broken,
        findings=[diagnosis_view(diagnosis) for diagnosis in report.findings],
        network=None if report.network is None else _network_view(report.network),
    )


def diagnosis_view(diagnosis: Diagnosis) -> DiagnosisView:
    """Return the outcome of one check."""
    return DiagnosisView(
        subject=diagnosis.subject,
        state=diagnosis.state,
        words=diagnosis.words,
        suggestions=diagnosis.suggestions,
    )


def _network_view(network: NetworkDiagnosis) -> NetworkDiagnosisView:
    return NetworkDiagnosisView(
        **asdict(diagnosis_view(network)),
        proxies=dict(network.proxies),
        no_proxy=network.direct,
        certificates=network.certificates,
    )


def validated_view(validated: Validated) -> ValidatedView:
    """Return suites, verification agents, chains and councils that were checked."""
    return ValidatedView(
        suites=[examination_view(file, examination) for file, examination in validated.suites.items()],
        verifications=[inspection_view(inspection) for inspection in validated.verifications],
        chains=[chain_inspection_view(inspection) for inspection in validated.chains],
        councils=[council_inspection_view(inspection) for inspection in validated.councils],
    )


def linted_view(linted: Linted) -> LintedView:
    """Return what is doubtful in suites."""
    return LintedView(
        suites=list(linted.suites),
        findings=[flaw_view(finding) for finding in linted.findings],
        flaws=[flaw_view(flaw) for flaw in linted.flaws] or UNSET,
    )


def inspection_view(inspection: Inspection) -> InspectionView:
    """Return what is wrong in a verify.yaml."""
    declaration = inspection.declaration
    agents = () if declaration is None else declaration.agents
    return InspectionView(
        file=inspection.file,
        agents=[VerifierView(name=agent.name, wave=agent.wave) for agent in agents],
        flaws=[flaw_view(flaw) for flaw in inspection.flaws],
    )


def created_view(done: CreatedFolder) -> CreatedFolderView:
    """Return a folder that was made."""
    return CreatedFolderView(folder=str(done.folder), kind=done.kind, files=[path.as_posix() for path in done.files])


def hook_view(done: Installed) -> HookView:
    """Return a git hook that was installed."""
    return HookView(hook=str(done.path), kept=None if done.kept is None else str(done.kept), command=done.command)


def allowed_view(done: Allowed) -> AllowedView:
    """Return exceptions for secrets that were written."""
    return AllowedView(
        declaration=str(done.declaration),
        allowed=[AllowedSecretView(file=one.file, line=one.line, kind=one.kind) for one in done.secrets],
    )
