"""Answers of the script to a request, live or in a batch, counted as paid."""

from dataclasses import replace
from fnmatch import fnmatchcase

from muster.domain.call import Stop
from muster.domain.canonical import Json, digest
from muster.domain.script import Line, usage_of
from muster.sim.audit import AuditLog
from muster.sim.options import ANY_MODEL, Options
from muster.sim.protocols.ask import Ask, SimAnswer, SimRefusal
from muster.sim.protocols.cache import PrefixCache

UNDIGESTED = ("stream", "stream_options")


class Responder:
    """Answers by the script; live requests and members of batches share one prompt cache."""

    def __init__(self, options: Options, book: AuditLog) -> None:
        self._options = options
        self._book = book
        self.cache = PrefixCache()

    def check(self, ask: Ask) -> None:
        """Refuse a model that nobody has, or a prompt that is too long."""
        models = self._options.models
        if models != ANY_MODEL and not any(fnmatchcase(ask.model, glob) for glob in models):
            raise SimRefusal(404, f"model: {ask.model} does not exist", code="model_not_found", param="model")
        most = self._options.context_tokens
        if most is None:
            return
        tokens = usage_of(ask.messages, ask.system, Line()).input
        if tokens > most:
            message = f"prompt is too long: {tokens} tokens > {most} maximum"
            raise SimRefusal(400, message, code="context_length_exceeded", param="messages")

    def answer(self, ask: Ask, name: str, number: int, *, batch: bool = False) -> SimAnswer:
        """Return the answer to a request, and count it."""
        line = self._options.script.answer(ask.model, ask.spoken, ask.max_tokens)
        line, sequence = _stop_at(line, ask.stop)
        usage = usage_of(ask.messages, ask.system, line)
        if ask.marks:
            usage = self.cache.split(usage, ask.marks)
        self._book.pay(name, ask.model, usage, batch=batch)
        return SimAnswer(
            number=number,
            digest=name,
            model=ask.model,
            line=line,
            usage=usage,
            stop_sequence=sequence,
            stream_usage=ask.stream_usage,
            batch=batch,
        )

    def forget(self) -> None:
        """Empty the prompt cache."""
        self.cache.clear()


def name_of(body: dict[str, Json]) -> str:
    """Return the digest under which a request is counted."""
    return digest({field: value for field, value in body.items() if field not in UNDIGESTED})


def _stop_at(line: Line, sequences: tuple[str, ...]) -> tuple[Line, str | None]:
    found = [(line.text.find(sequence), sequence) for sequence in sequences if sequence in line.text]
    if not found:
        return line, None
    place, sequence = min(found)
    return replace(line, text=line.text[:place], tool_calls=(), stop=Stop.SEQUENCE), sequence
