"""Verifications: prepared, planned, started, reported, fixed and measured. `Muster.verify`."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from muster.app.base.backend import Backend
from muster.app.base.costs import Quoting
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions, require_moment
from muster.app.runs.runs import Runs
from muster.app.verify.plan import VerifyPlan, VerifyPlanner, goes_into_batches
from muster.app.verify.repair import Fixed, fix
from muster.app.verify.request import (
    EVERY_AGENT,
    ConcludedVerification,
    LeftBehind,
    Prepared,
    Repair,
    StartedVerification,
    VerifyChoice,
    VerifyRequest,
)
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.money import Microdollars
from muster.domain.run import TERMINAL, Run
from muster.git.repository import Git
from muster.reporting.files import require_folder, write_file
from muster.settings import Settings
from muster.verify.declaration.declaration import Declaration, read_declaration, shipped
from muster.verify.declaration.verification import Verification, Verifier
from muster.verify.findings.finding import Severity
from muster.verify.kind import VERIFICATION
from muster.verify.reports.formats import report_of_verification
from muster.verify.reports.located import FindingPage, page_of_findings, with_code
from muster.verify.reports.log import append_log, log_lines
from muster.verify.reports.markdown import wave_file_name, write_wave
from muster.verify.reports.metrics import VerifyMetrics, verify_metrics
from muster.verify.reports.run import WavesRun, open_waves_run
from muster.verify.reports.summary import VerifyReport, summarize
from muster.verify.sources.files import Bounds, FileSelection, select
from muster.verify.spec import read_spec, stored

ASK_IN_BATCHES = ("add --batch", "or write `dispatch: batch` in the declaration of an agent")  # suggestions
USUAL_FILES = ("verify.yaml", "verify.yml")


class VerifyFolders:
    """Where a verification leaves what it leaves behind."""

    def __init__(self, settings: Settings) -> None:
        own = settings.home / "verify"
        self.reports = settings.folder / settings.verify.reports if settings.verify.reports else own / "reports"
        self.log = settings.folder / settings.verify.log if settings.verify.log else own / "log"
        self._staged = own / "staged"

    def new_staging(self) -> Path:
        """Name a folder for the contents of one commit that is being made."""
        return self._staged.absolute() / uuid4().hex

    def tidy(self, spec: Verification) -> None:
        """Remove the staged contents of a verification that needs them no more."""
        source = Path(spec.source)
        if spec.source and source.parent == self._staged.absolute():
            shutil.rmtree(source, ignore_errors=True)


class Verifications(KindPart):
    """The verifications of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs = runs
        self._folders = VerifyFolders(backend.settings)

    @asynccontextmanager
    async def prepare(
        self, folder: str | Path, selection: FileSelection, choice: VerifyChoice = EVERY_AGENT
    ) -> AsyncIterator[Prepared]:
        """Choose the files and the agents; what was staged for them is gone afterwards, unless a run was started."""
        found = await self._prepare(Path(folder), selection, choice)
        try:
            yield found
        finally:
            if not found.started:
                self._folders.tidy(found.spec)

    def plan(self, spec: Verification, dispatch: Dispatch = LIVE, quoting: Quoting = Quoting.ALL) -> VerifyPlan:
        """Return what a verification would do and cost; raises what would keep it from being done."""
        path = self._settings.variables.get("PATH")
        return VerifyPlanner(self._directory, spec, dispatch, quoting, path=path).survey()

    def require_folders(self) -> None:
        """Refuse, before anything is spent, when the reports of waves or the log cannot be written."""
        for folder in (self._folders.reports, self._folders.log):
            require_folder(folder)

    async def begin(self, request: VerifyRequest) -> StartedVerification:
        """Prepare, plan and start a verification; nothing is started when there is nothing to verify."""
        async with self.prepare(request.folder, request.selection, request.choice) as prepared:
            if prepared.is_empty:
                return StartedVerification(prepared=prepared)
            self._refuse_useless(prepared.spec, request)
            plan = self.plan(prepared.spec, request.options.dispatch, Quoting.FIRST)
            handle = (
                await self.submit(prepared, request.options)
                if request.queued
                else await self.start(prepared, request.options, detach=request.detach)
            )
            return StartedVerification(prepared=prepared, plan=plan, handle=handle)

    async def start(self, prepared: Prepared, options: RunOptions | None = None, *, detach: bool = False) -> RunHandle:
        """Start a verification that was prepared; with `detach` it must have agents that are asked in batches."""
        if detach:
            self.require_batches(prepared.spec, LIVE if options is None else options.dispatch)
        self.require_folders()
        handle = await self._runs.start_checked(VERIFICATION.workload, stored(prepared.spec), options, detach=detach)
        prepared.started = True
        return handle

    async def submit(self, prepared: Prepared, options: RunOptions | None = None) -> RunHandle:
        """Store a verification that was prepared for the workers."""
        self.require_folders()
        handle = await self._runs.submit(VERIFICATION.workload, stored(prepared.spec), options)
        prepared.started = True
        return handle

    @staticmethod
    def _refuse_useless(spec: Verification, request: VerifyRequest) -> None:
        if request.batch_option and not goes_into_batches(spec, request.options.dispatch):
            raise BadArgument(
                f"{request.batch_option} applies to batches, and every call of this verification is live",
                suggestions=ASK_IN_BATCHES,
            )

    def uses_batches(self, run: Run) -> bool:
        """Return whether any agent of a verification is asked in batches."""
        return goes_into_batches(read_spec(run.spec), run.dispatch)

    def require_resumable(self, run: Run) -> None:
        """Raise before anything is spent when reports could not be written."""
        self.require_folders()

    async def after_end(self, run: Run) -> None:
        """Write the reports and the log of a verification, and remove what was staged for it."""
        await self.conclude(run)

    def require_batches(self, spec: Verification, dispatch: Dispatch) -> None:
        """Raise BadArgument when none of the agents of a verification is asked in batches."""
        if not goes_into_batches(spec, dispatch):
            raise BadArgument(
                "a detached verification requires batches, and none of these agents uses them",
                suggestions=ASK_IN_BATCHES,
            )

    async def find(self, reference: str) -> Run:
        """Return a verification by its reference."""
        return await self._runs.of_kind(VERIFICATION, reference)

    async def report(self, run: Run) -> VerifyReport:
        """Return the summary of a verification."""
        return await summarize(await open_waves_run(self._store, run))

    async def findings(
        self,
        reference: str,
        *,
        severity: Severity | None = None,
        rejected: bool = False,
        after: str | None = None,
        limit: int = 50,
    ) -> FindingPage:
        """Return a page of what a verification found, the worst files first, with the code as it was verified."""
        waves = await open_waves_run(self._store, await self.find(reference))
        report = await summarize(waves)
        page = page_of_findings(report, severity=severity, rejected=rejected, after=after, limit=limit)
        return await with_code(waves, page)

    async def conclude(self, run: Run, repair: Repair | None = None) -> ConcludedVerification:
        """Sum up a verification, write its reports and log, and remove what was staged for one that is over.

        To do it twice changes nothing; raises NotFound for a run that had not begun. One that was made after a repair
        must have seen every file that the repair changed.
        """
        try:
            report = await report_of_verification(self._store, run)
            left = await self.leave_behind(run, report.summary)
            unverified = await self._unverified(run, repair)
            return ConcludedVerification(report=report, left=left, repair=repair, unverified=unverified)
        finally:
            self.tidy(run)

    async def leave_behind(self, run: Run, report: VerifyReport | None = None) -> LeftBehind:
        """Write the report of each wave and the lines of the log, from a summary that may be known already."""
        waves = await open_waves_run(self._store, run)
        report = report or await summarize(waves)
        written = [await _write_wave(self._folders.reports, waves, report, wave.wave) for wave in report.waves]
        log = append_log(self._folders.log, log_lines(waves, report))
        return LeftBehind(reports=tuple(written), log=log)

    def tidy(self, run: Run) -> None:
        """Remove the staged contents of a run that is over; any other one may not have read its files yet."""
        if run.state in TERMINAL:
            self._folders.tidy(read_spec(run.spec))

    async def fix(self, run: Run) -> Fixed:
        """Make the changes that the findings of a run propose, as far as they can be made."""
        return await fix(self._store, self._runs, run)

    async def repair(self, run: Run, request: VerifyRequest) -> Repair:
        """Make the changes that the findings of a run propose, and start to verify them with what is left of a budget.

        Without changes nothing is verified again; where that cannot be done, the first verification is what counts.
        """
        request.require_repairable()
        fixed = await self.fix(run)
        if not fixed.changed:
            return Repair(before=run, fixed=fixed)
        budget, least = request.options.budget, 1  # so little that nobody can be asked
        left = None if budget is None else Microdollars(max(budget - run.total.settled, least))
        try:
            again = await self.begin(replace(request, options=replace(request.options, budget=left)))
        except (BadArgument, BadFile) as error:
            return Repair(before=run, fixed=fixed, obstacle=f"what was changed cannot be verified: {error.message}")
        obstacle = "" if again.handle is not None else "what was changed leaves nothing to verify"
        return Repair(before=run, fixed=fixed, again=again, obstacle=obstacle)

    async def _unverified(self, run: Run, repair: Repair | None) -> tuple[str, ...]:
        """Return the files that were changed by a repair and that a verification after it did not see."""
        if repair is None or run.id == repair.before.id:
            return ()
        seen = {file.path for file in (await open_waves_run(self._store, run)).snapshot.files}
        return tuple(path for path in repair.fixed.changed if path not in seen)

    async def metrics(self, since: float) -> VerifyMetrics:
        """Return figures over the verifications since then."""
        return await verify_metrics(self._store, require_moment(since))

    async def _prepare(self, folder: Path, selection: FileSelection, choice: VerifyChoice) -> Prepared:
        declaration = await declared(self._settings, folder, choice.agents_file)
        _check(declaration, choice)
        verifiers = declaration.verifiers(choice.model, self._settings.verify.model)
        asked = tuple(one for one in verifiers if _is_asked(one, choice))
        bounds = Bounds(limits=declaration.limits, exclude=declaration.exclude, asked=asked)
        into = self._folders.new_staging() if selection.staged else None
        try:
            selected = await select(folder, selection, into=into, bounds=bounds)
        except BaseException:
            if into is not None:
                shutil.rmtree(into, ignore_errors=True)
            raise
        spec = Verification(
            root=str(selected.root),
            source="" if selected.source == selected.root else str(selected.source),
            files=selected.files,
            verifiers=verifiers,
            thresholds=declaration.thresholds,
            waves=choice.waves,
            agents=choice.agents,
            keep_going=choice.keep_going,
            live=choice.live,
            cache=choice.cache,
            markers=selected.markers,
            left_out=selected.left_out,
            limits=declaration.limits,
            allow_secrets=declaration.allow_secrets,
            fail_named_secrets=declaration.fail_named_secrets,
            unseen_secrets=selected.unseen_secrets,
            repair=choice.repair,
        )
        return Prepared(spec=read_spec(stored(spec)), agents_file=declaration.file, left_out=spec.left_out)


def _check(declaration: Declaration, choice: VerifyChoice) -> None:
    """Refuse agents and waves that are not declared."""
    names, waves = [agent.name for agent in declaration.agents], declaration.waves
    known, numbers = f"agents: {', '.join(names)}", f"waves: {', '.join(map(str, waves))}"
    flaws = [
        _unknown(f"agents[{place}]", f"unknown agent {name!r} in {declaration.file}", known)
        for place, name in enumerate(choice.agents)
        if name not in names
    ]
    flaws += [
        _unknown(f"waves[{place}]", f"no wave {wave} in {declaration.file}", numbers)
        for place, wave in enumerate(choice.waves)
        if wave not in waves
    ]
    if flaws:
        raise NotFound.of(flaws)
    if choice.agents and choice.waves and not any(_is_asked(agent, choice) for agent in declaration.agents):
        raise BadArgument(_WORDS, flaws=_APART)


def _unknown(path: str, message: str, known: str) -> FieldFlaw:
    return FieldFlaw(path=path, message=message, code=FlawCode.UNKNOWN, suggestion=known, by_itself=True)


_WORDS = "none of the given agents is in the given waves"
_APART = tuple(
    FieldFlaw(path=name, message=_WORDS, code=FlawCode.CONFLICT, by_itself=True) for name in ("agents", "waves")
)


async def declared(settings: Settings, folder: Path, named: Path | None) -> Declaration:
    """Read who verifies: from the file that is named, else that of the settings, else verify.yaml, else the shipped."""
    path = await declared_in(settings, folder, named)
    return shipped() if path is None else read_declaration(path)


async def declared_in(settings: Settings, folder: Path, named: Path | None) -> Path | None:
    """Return the file that says who verifies; None: there is none, and the shipped agents do."""
    if named is not None:
        return named
    if settings.verify.agents is not None:
        return settings.folder / settings.verify.agents
    return await asyncio.to_thread(_usual_file, folder, await Git(folder).root())


def _usual_file(folder: Path, top: Path | None) -> Path | None:
    """Find verify.yaml in a folder or the nearest one above it, up to the top of its repository."""
    here = folder.resolve()
    within = (top or here).resolve()
    folders = (here, *(above for above in here.parents if above.is_relative_to(within)))
    return next((above / name for above in folders for name in USUAL_FILES if (above / name).exists()), None)


def _is_asked(verifier: Verifier, choice: VerifyChoice) -> bool:
    named = not choice.agents or verifier.name in choice.agents
    return named and (not choice.waves or verifier.wave in choice.waves)


async def _write_wave(folder: Path, waves: WavesRun, report: VerifyReport, wave: int) -> Path:
    async def write(out: TextIO) -> None:
        await write_wave(report, wave, out)

    path = folder / wave_file_name(waves.run, wave)
    if not path.exists():
        await write_file(path, write)
    return path
