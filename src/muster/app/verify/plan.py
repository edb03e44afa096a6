"""What a verification would do and cost, found out before anything is stored or spent."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.base.costs import NOTHING, Load, Quoter, Quoting
from muster.domain.call import Message, Request, Role
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.errors import BadConfiguration
from muster.domain.script import BYTES_PER_TOKEN
from muster.verify.agents.question import pose, pose_again
from muster.verify.arrangement import Arrangement, beginning, read_sources, sent_as
from muster.verify.declaration.verification import Kind, LeftOut, Verification, Verifier
from muster.verify.sources.source import Chunk, Source

MAX_FLAW = "x" * 500  # of a reply, as it is told back


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAgent:
    """One agent as it would be asked."""

    verifier: Verifier
    files: int
    load: Load
    mode: Mode | None  # None: a command, which no agent runs


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlan:
    """A verification as it would be."""

    files: int
    bytes: int
    redacted: int  # secrets that would be taken out
    left_out: tuple[LeftOut, ...]
    parts: tuple[PlannedAgent, ...]
    unseen: tuple[str, ...]

    @property
    def waves(self) -> tuple[int, ...]:
        """The numbers of the waves."""
        return tuple(sorted({part.verifier.wave for part in self.parts}))

    @property
    def all(self) -> Load:
        """Everything together."""
        total = NOTHING
        for part in self.parts:
            total = total.plus(part.load)
        return total


class VerifyPlanner:
    """Goes through the agents and chunks of a spec."""

    def __init__(
        self, directory: AgentDirectory, spec: Verification, dispatch: Dispatch, quoting: Quoting, *, path: str | None
    ) -> None:
        self._spec, self._mode, self._directory = spec, dispatch.mode, directory
        self._quoter = Quoter(directory, dispatch, quoting)
        self._path = path  # where programs are looked for
        self._sent: set[tuple[object, ...]] = set()  # beginnings of requests, by wave

    def survey(self) -> VerifyPlan:
        """Look at every file once; raises what would keep the run from being done."""
        sources: list[Source] = []
        left_out = list(self._spec.left_out)
        for found in read_sources(self._spec):
            if isinstance(found, LeftOut):
                left_out.append(found)
            else:
                sources.append(found)
        arrangement = Arrangement(self._spec, sources)
        return VerifyPlan(
            files=len(sources),
            bytes=sum(len(source.text.encode("utf-8", "surrogatepass")) for source in sources),
            redacted=sum(source.redacted for source in sources),
            left_out=tuple(left_out),
            parts=tuple(self._parts(arrangement)),
            unseen=arrangement.unseen,
        )

    def _parts(self, arrangement: Arrangement) -> Iterator[PlannedAgent]:
        for wave in arrangement.waves:
            for verifier in arrangement.of(wave):
                mode = sent_as(self._spec, verifier, self._mode)
                load = self._load(verifier, arrangement, mode)
                sent = self._directory.mode_of(verifier.model, mode) if verifier.kind is Kind.MODEL else None
                yield PlannedAgent(verifier=verifier, files=len(arrangement.files(verifier)), load=load, mode=sent)

    def _load(self, verifier: Verifier, arrangement: Arrangement, mode: Mode) -> Load:
        calls = arrangement.parts(verifier)
        if verifier.kind is Kind.COMMAND and calls:
            self._require_program(verifier)
        if verifier.kind is Kind.COMMAND or not self._quoter.wants(verifier.model):
            return Load(calls=calls, most_calls=calls)
        chunks = arrangement.chunks(verifier)
        asked = [pose(verifier, chunk, shared=self._spec.cache) for chunk in chunks]
        profile = self._directory.find(verifier.model).profile
        again = [pose_again(request, "x" * (profile.limit(request) * BYTES_PER_TOKEN), MAX_FLAW) for request in asked]
        least = [self._least(verifier, *both) for both in zip(chunks, asked, strict=True)]
        return self._quoter.load(verifier.model, least, [*asked, *again], calls, mode)

    def _require_program(self, verifier: Verifier) -> None:
        """Refuse a checker that is not there: in the second wave it would be missed after the first was paid."""
        program = verifier.command[0]
        place = str(Path(self._spec.root) / program) if "/" in program else program
        if shutil.which(place, path=verifier.environment.get("PATH", self._path)) is None:
            raise BadConfiguration(
                f"agent {verifier.name!r}: program {program!r} not found",
                suggestions=("install it, or use its full path",),
            )

    def _least(self, verifier: Verifier, chunk: Chunk, request: Request) -> Request:
        """Return what is sure to be paid for: what another agent sends in the same wave may come from a cache."""
        name = (verifier.wave, *beginning(verifier), chunk.name)
        if not self._spec.cache or name not in self._sent:
            self._sent.add(name)
            return request
        own = request.messages[0].text[request.shared :]
        return replace(request, messages=(Message(role=Role.USER, text=own),), shared=0)


def goes_into_batches(spec: Verification, dispatch: Dispatch) -> bool:
    """Return whether any agent of a verification is asked in batches."""
    if dispatch.mode is Mode.BATCH:
        return True
    asked = Arrangement(spec, ())
    agents = [one for wave in asked.waves for one in asked.of(wave) if one.kind is Kind.MODEL]
    return any(sent_as(spec, one, dispatch.mode) is Mode.BATCH for one in agents)
