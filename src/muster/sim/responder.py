"""Answers of the script to a request, live or in a batch, counted as paid."""

from dataclasses import replace
from fnmatch import fnmatchcase

from muster.domain.call import Stop, Usage
from muster.domain.canonical import Json, digest
from muster.domain.script import Line, cut, usage_of
from muster.sim.audit import AuditLog
from muster.sim.options import ANY_MODEL, Options
from muster.sim.protocols.ask import (
    DEFAULT_TIER,
    FAST,
    NO_GEO,
    Ask,
    SimAnswer,
    SimRefusal,
    Thought,
    WireProtocol,
    sent_tokens,
)
from muster.sim.protocols.cache import PrefixCache
from muster.sim.protocols.thinking import think

UNDIGESTED = ("stream", "stream_options", "service_tier", "speed", "inference_geo")


class Responder:
    """Answers by the script; live requests and members of batches share one prompt cache."""

    def __init__(self, options: Options, book: AuditLog) -> None:
        self._options = options
        self._thinks = options.thinks
        self._book = book
        self.cache = PrefixCache()

    def read(self, dialect: WireProtocol, body: dict[str, Json], *, batch: bool = False) -> Ask:
        """Understand a request, and refuse what its model does not have or take."""
        ask = dialect.read(body)
        self._check_model(ask)
        _require_context(ask, self._options.context_tokens)
        if not self._thinks:
            return ask
        plan = dialect.plan(body, batch=batch)
        self._book.look(plan)
        if plan.refusal is not None:
            raise plan.refusal
        asked = replace(ask, plan=plan)
        _require_context(asked, ask.context)
        return asked

    def answer(self, ask: Ask, name: str, number: int, *, batch: bool = False) -> SimAnswer:
        """Return the answer to a request, and count it."""
        line = self._options.script.answer(ask.model, ask.spoken, ask.max_tokens)
        thought = None
        if ask.plan is not None:
            thought = think(ask.plan, ask.model, name, line.thinking, redacted=line.redacted)
            line, thought = _fit(line, thought, ask.max_tokens)
        line, sequence = _stop_at(line, ask.stop)
        usage = usage_of(ask.messages, ask.system, line)
        if ask.media or thought is not None or ask.plan is not None:
            usage = _with_thinking(usage, ask, line, thought)
        if ask.marks:
            usage = self.cache.split(usage, ask.marks)
        if thought is not None:
            self._book.think(thought.tokens)
        tier = self.tier_of(ask)
        geo = self.geo_of(ask)
        self._book.pay(name, ask.model, usage, tier=FAST if ask.fast else tier, geo=geo, batch=batch)
        return SimAnswer(
            number=number,
            digest=name,
            ask=ask,
            line=line,
            usage=usage,
            stop_sequence=sequence,
            batch=batch,
            thought=thought,
            tier=tier,
            geo=geo,
        )

    def tier_of(self, ask: Ask) -> str:
        """Return the tier that serves a request: the one that it names, else that of the project."""
        tier = self._options.tier if ask.tier is None else ask.tier
        return tier if tier in ask.tiers else DEFAULT_TIER

    def geo_of(self, ask: Ask) -> str:
        """Return where inference takes place: where the request says, else where the workspace keeps it."""
        return (self._options.geo if ask.geo is None else ask.geo) if ask.has_geo else NO_GEO

    def forget(self) -> None:
        """Empty the prompt cache."""
        self.cache.clear()

    def _check_model(self, ask: Ask) -> None:
        models = self._options.models
        if models != ANY_MODEL and not any(fnmatchcase(ask.model, glob) for glob in models):
            raise SimRefusal(404, f"model: {ask.model} does not exist", code="model_not_found", param="model")


def _require_context(ask: Ask, most: int | None) -> None:
    """Refuse a request with more tokens than are read."""
    tokens = 0 if most is None else sent_tokens(ask)
    if most is not None and tokens > most:
        message = f"prompt is too long: {tokens} tokens > {most} maximum"
        raise SimRefusal(400, message, code="context_length_exceeded", param="messages")


def name_of(body: dict[str, Json]) -> str:
    """Return the digest under which a request is counted."""
    return digest({field: value for field, value in body.items() if field not in UNDIGESTED})


def _fit(line: Line, thought: Thought | None, max_tokens: int) -> tuple[Line, Thought | None]:
    """Cut thinking and answer to what both may take: thinking comes first."""
    if thought is None:
        return line, None
    left = max_tokens - thought.tokens
    if left <= 0:
        return Line(stop=Stop.MAX_TOKENS), replace(thought, tokens=max_tokens)
    return cut(line, left), thought


def _with_thinking(usage: Usage, ask: Ask, line: Line, thought: Thought | None) -> Usage:
    """Add images and thinking to what went in, and the thought to what came out."""
    said = usage.output if line.text or line.tool_calls else 0
    output = usage.output if thought is None else thought.tokens + said
    return replace(usage, input=sent_tokens(ask), output=output)


def _stop_at(line: Line, sequences: tuple[str, ...]) -> tuple[Line, str | None]:
    found = [(line.text.find(sequence), sequence) for sequence in sequences if sequence in line.text]
    if not found:
        return line, None
    place, sequence = min(found)
    return replace(line, text=line.text[:place], tool_calls=(), stop=Stop.SEQUENCE), sequence
