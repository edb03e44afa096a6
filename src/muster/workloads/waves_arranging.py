"""Who looks at what in which wave. Pure: the same spec and files always give the same arrangement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.domain.call import SHORTEST_CACHED
from muster.domain.canonical import canonical
from muster.domain.run import Mode
from muster.domain.source import Chunk, Source
from muster.domain.verification import Kind, Verification, Verifier
from muster.formats.waves.chunks import cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A chunk with the agents that are asked about it."""

    chunk: Chunk
    verifiers: tuple[Verifier, ...]

    @property
    def cached(self) -> bool:
        """Whether the first is asked alone and marks the chunk, so that the others find it in the provider's cache."""
        return len(self.verifiers) > 1 and len(self.chunk.text) >= SHORTEST_CACHED


class Arrangement:
    """Gives every agent of every wave its files and chunks."""

    def __init__(self, spec: Verification, sources: Sequence[Source]) -> None:
        self._spec, self._sources = spec, tuple(sources)
        self._verifiers = [one for one in spec.verifiers if not spec.agents or one.name in spec.agents]
        self._chunks: dict[tuple[str, ...], tuple[Chunk, ...]] = {}
        numbers = sorted({one.wave for one in self._verifiers})
        self.waves = tuple(number for number in numbers if not spec.waves or number in spec.waves)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The files that are for nobody."""
        asked = [one for wave in self.waves for one in self.of(wave)]
        return tuple(source.path for source in self._sources if not any(one.looks_at(source.path) for one in asked))

    @property
    def sources(self) -> tuple[Source, ...]:
        """All files that are verified."""
        return self._sources

    def of(self, wave: int) -> tuple[Verifier, ...]:
        """Give the agents of a wave, in the order in which they are declared."""
        return tuple(one for one in self._verifiers if one.wave == wave)

    def files(self, verifier: Verifier) -> tuple[Source, ...]:
        """Give the files that are for an agent."""
        return tuple(source for source in self._sources if verifier.looks_at(source.path))

    def chunks(self, verifier: Verifier) -> tuple[Chunk, ...]:
        """Give the chunks that an agent is asked about; agents with the same files have the same chunks."""
        files = self.files(verifier)
        name = tuple(source.path for source in files)
        if name not in self._chunks:
            self._chunks[name] = cut(files, self._spec.limits)
        return self._chunks[name]

    def parts(self, verifier: Verifier) -> int:
        """Say how many reports there are to be of an agent."""
        return len(self.chunks(verifier)) if verifier.kind is Kind.MODEL else min(1, len(self.files(verifier)))

    def units(self, wave: int, usual: Mode) -> Iterator[Unit]:
        """Give what models are asked in a wave, chunk by chunk; those that can share a cache stand together."""
        models = [one for one in self.of(wave) if one.kind is Kind.MODEL]
        for group in self._groups(models, usual):
            shared: dict[str, tuple[Chunk, list[Verifier]]] = {}
            for verifier in group:
                for chunk in self.chunks(verifier):
                    shared.setdefault(chunk.name, (chunk, []))[1].append(verifier)
            yield from (Unit(chunk=chunk, verifiers=tuple(asked)) for chunk, asked in shared.values())

    def _groups(self, verifiers: Sequence[Verifier], usual: Mode) -> list[tuple[Verifier, ...]]:
        found: dict[tuple[object, ...], list[Verifier]] = {}
        for one in verifiers:
            alone = not self._spec.cache or sent_as(self._spec, one, usual) is Mode.BATCH  # where nobody is first
            found.setdefault((one.name,) if alone else beginning(one), []).append(one)
        return [tuple(group) for group in found.values()]


def beginning(verifier: Verifier) -> tuple[object, ...]:
    """Name what the requests of an agent begin with, besides the chunk: its model, and the shape of the answer."""
    return verifier.model, verifier.shape, None if verifier.schema is None else canonical(dict(verifier.schema))


def sent_as(spec: Verification, verifier: Verifier, usual: Mode) -> Mode:
    """Say how an agent is asked: as itself says, else as the run does; and live when the spec wants that."""
    if spec.live:
        return Mode.LIVE
    return usual if verifier.dispatch is None else Mode(verifier.dispatch)
