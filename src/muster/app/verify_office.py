"""What the command line does with verifications besides driving them: put them together, survey them, tidy up."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from muster.app.git import Git
from muster.app.loads import Quoting
from muster.app.muster import Muster
from muster.app.verify_files import Bounds, Selection, select
from muster.app.verify_survey import Part, VerifySurvey, VerifySurveyor
from muster.domain.errors import BadArgument
from muster.domain.run import Dispatch
from muster.domain.verification import LeftOut, Verification, Verifier
from muster.formats.waves.declaration import Declaration, read_declaration
from muster.formats.waves.defaults import shipped
from muster.formats.waves.spec import read_spec, stored
from muster.settings import Settings

__all__ = ["Choice", "Part", "Prepared", "Quoting", "Selection", "VerifySurvey", "Whereabouts", "prepare", "survey"]

USUAL_FILES = ("verify.yaml", "verify.yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Who is to verify, and how."""

    agents_file: Path | None = None
    model: str | None = None
    waves: tuple[int, ...] = ()
    agents: tuple[str, ...] = ()
    keep_going: bool = False
    live: bool = False
    cache: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A verification that is ready to be started; without files there is nothing to verify."""

    spec: Verification
    agents_file: str  # which file says who verifies
    left_out: tuple[LeftOut, ...] = ()


class Whereabouts:
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


async def prepare(muster: Muster, folder: Path, selection: Selection, choice: Choice) -> Prepared:
    """Choose the files and the agents, and put them together; raises what keeps them from being verified."""
    declaration = await declared(muster.settings, folder, choice.agents_file)
    _check(declaration, choice)
    verifiers = declaration.verifiers(choice.model, muster.settings.verify.model)
    asked = tuple(one for one in verifiers if _is_asked(one, choice))
    bounds = Bounds(limits=declaration.limits, exclude=declaration.exclude, asked=asked)
    into = Whereabouts(muster.settings).new_staging() if selection.staged else None
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
    )
    return Prepared(spec=read_spec(stored(spec)), agents_file=declaration.file, left_out=spec.left_out)


def _check(declaration: Declaration, choice: Choice) -> None:
    """Refuse agents and waves that nobody declared."""
    names, waves = [agent.name for agent in declaration.agents], declaration.waves
    for name in choice.agents:
        if name not in names:
            raise BadArgument(
                f"there is no agent {name!r} in {declaration.file}", suggestions=(f"one of {', '.join(names)}",)
            )
    for wave in choice.waves:
        if wave not in waves:
            raise BadArgument(
                f"there is no wave {wave} in {declaration.file}", suggestions=(f"one of {', '.join(map(str, waves))}",)
            )
    if choice.agents and choice.waves and not any(_is_asked(agent, choice) for agent in declaration.agents):
        raise BadArgument("none of the agents that were named is in the waves that were named")


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


def survey(muster: Muster, spec: Verification, dispatch: Dispatch, quoting: Quoting) -> VerifySurvey:
    """Say what a verification would do; raises what would keep it from being done."""
    path = muster.settings.variables.get("PATH")
    return VerifySurveyor(muster.directory, spec, dispatch, quoting, path=path).survey()


def _is_asked(verifier: Verifier, choice: Choice) -> bool:
    named = not choice.agents or verifier.name in choice.agents
    return named and (not choice.waves or verifier.wave in choice.waves)
