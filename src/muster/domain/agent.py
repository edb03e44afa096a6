"""Who answers: an agent's name, its defaults, and how fast it may be asked."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import ClassVar

from muster.domain.call import Reply, Request, Stop
from muster.domain.canonical import Json, JsonObject
from muster.domain.effort import (
    NO_TRAITS,
    ModelCapabilities,
    OutputTraits,
    require_output,
    require_room,
    require_settings,
)
from muster.domain.errors import BadConfiguration
from muster.domain.media import MediaSupport, require_media
from muster.domain.money import Microdollars
from muster.domain.price import Price
from muster.domain.rules import CURRENT, DefaultRules
from muster.domain.wire import FAMILY, WireChoice

DEFAULT_MAX_TOKENS = CURRENT.max_tokens
COMMAND_LIMITER = "command"  # the limiter that all commands share
_NO_SETTINGS: Mapping[str, Json] = {}
PHASE_SECONDS = "phase_budget_remaining_secs"  # in the context of a request, or its volatile part


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a provider's model may be asked; None leaves a rate open."""

    concurrency: int = 100
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    # Whether calls get ready while all places are taken. It keeps a provider busy; a process that takes minutes
    # gains nothing, and after a crash those that had not begun would be booked as uncertain.
    gets_ahead: bool = True


# A timer that is late by more than this shows that the process stood still, as after Ctrl-Z.
LATE = 1.0
# Seconds that what was waited for gets after that, since nobody read what arrived meanwhile.
CATCH_UP = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: to connect, without a byte, for the whole call on the wire, and to close it when it is over."""

    connect: float = 10.0
    idle: float = 120.0
    call: float = 600.0
    grace: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredLimit:
    """An agent that may write less than was asked for, since its section says so."""

    agent: str
    asked: int  # tokens
    limit: int

    event: ClassVar[str] = "agent.limited"

    def told(self) -> JsonObject:
        """Return what its event tells."""
        return {"agent": self.agent, "asked": self.asked, "max_tokens": self.limit}

    def __str__(self) -> str:
        return (
            f"{self.agent} may write {self.limit:,} tokens (max_tokens of its section in muster.toml); "
            f"{self.asked:,} were asked for"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLive:
    """An agent that is asked in the standard tier by a run that wants the tier flex."""

    agent: str

    event: ClassVar[str] = "agent.live"

    def told(self) -> JsonObject:
        """Return what its event tells."""
        return {"agent": self.agent}

    def __str__(self) -> str:
        return f"{self.agent} has no tier flex; it is asked live"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAnswer:
    """An agent that reached its limit before its answer was whole, since its thinking counts towards it."""

    agent: str
    limit: int  # tokens
    thinking: int

    event: ClassVar[str] = "agent.cut"

    def told(self) -> JsonObject:
        """Return what its event tells."""
        return {"agent": self.agent, "max_tokens": self.limit, "thinking": self.thinking}

    def __str__(self) -> str:
        return (
            f"an answer of {self.agent} was cut at {self.limit:,} tokens, {self.thinking:,} of them thinking; raise "
            f"max_tokens, or ask for less effort"
        )


def cut_answers(agent: str, request: Request, reply: Reply) -> tuple[CutAnswer, ...]:
    """Return what is to be said of a reply that thinking has cut short; nothing of all others."""
    if reply.stop is not Stop.MAX_TOKENS or not reply.usage.thinking:
        return ()
    limit = request.max_tokens or reply.usage.output
    return (CutAnswer(agent=agent, limit=limit, thinking=reply.usage.thinking),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An agent as the engine sees it."""

    name: str  # "anthropic/claude-haiku-5-5" or a declared name
    limiter: str  # the name of the limiter that its calls share: "anthropic:claude-haiku-5-5"
    provider: str = ""  # of a model: "anthropic"
    model: str = ""  # of a model, as the provider calls it
    pace: Pace = Pace()
    system: str = ""
    max_tokens: int | None = None  # that its section names
    temperature: float | None = None
    seed: int | None = None
    timeouts: Timeouts | None = None  # its own, where a call names none
    phased: bool = False  # it works in phases: its own time counts only where nothing is said of what is left of one
    timed: bool = False  # its own time counts there too
    person: bool = False  # it is asked without an attempt, and answers with a signal
    settable: frozenset[str] = frozenset()  # what a call may set for itself
    settings: Mapping[str, Json] | None = None  # of these, what is set where a call sets nothing
    capabilities: ModelCapabilities | None = None  # of a model: what it takes of them; None: not known
    traits: OutputTraits = NO_TRAITS  # of a model: how much it writes
    max_output: int | None = None  # of a model: the limit above which its provider refuses a request; None: not known
    wires: WireChoice | None = None  # of a model behind OpenAI's API: in which form it is asked
    keeps_budget: bool = False  # it is told what a call may cost, and stops there
    media: MediaSupport | None = None  # the images and documents that it can be shown; None: none

    @property
    def label(self) -> str:
        """Return its name where names must be few: commands, which are as many as their arguments, share one."""
        return COMMAND_LIMITER if self.limiter == COMMAND_LIMITER else self.name

    def blocks_from(self, request: Request) -> str:
        """Return where blocks of earlier answers must come from to be sent along with a request."""
        return (self.wires.of(request).blocks if self.wires is not None else "") or self.provider

    def knows_blocks(self, provider: str) -> bool:
        """Return whether blocks are of the API that this agent is asked through, in whichever form of it."""
        return provider.partition("/")[0] == (self.provider if self.wires is None else FAMILY)

    def allow(self, request: Request, usual: Timeouts, named: float | None = None) -> Timeouts:
        """Return how long a call may take, which may name a time by itself."""
        own = self.timeouts or usual
        wanted = own if named is None else replace(own, call=named)
        left = _left_of_phase(request)
        if left is None:
            return wanted
        is_limited = self.timed or named is not None or not self.phased
        return replace(wanted, call=min(wanted.call, left) if is_limited else left)

    def limit(self, request: Request, rules: DefaultRules = CURRENT) -> int:
        """Return how many tokens may be written in answer to a request."""
        settings = {**(self.settings or {}), **(request.settings or {})}
        return rules.limit(request.max_tokens, request.usual_tokens, self.max_tokens, self.traits, settings)

    def lowered(self, request: Request, rules: DefaultRules = CURRENT) -> LoweredLimit | None:
        """Return the limit of this agent where a request, or what is usual for its question, goes beyond it."""
        asked = request.usual_tokens if request.max_tokens is None else request.max_tokens
        if asked is None or self.max_tokens is None or asked <= self.max_tokens:
            return None
        limit = self.limit(request, rules)
        return LoweredLimit(agent=self.name, asked=asked, limit=limit) if limit < asked else None

    def complete(self, request: Request, rules: DefaultRules = CURRENT) -> Request:
        """Fill what the request leaves open with this agent's defaults; raises for what it does not take."""
        if request.has_media:
            require_media(self.name, self.media, request.media)
        settings = request.settings
        if settings:
            self._require_settable(settings)
        if self.settings:
            settings = {**self.settings, **(settings or {})}
        if settings and self.provider:
            self.require_thinking(settings)
        limit = rules.limit(
            request.max_tokens, request.usual_tokens, self.max_tokens, self.traits, settings or _NO_SETTINGS
        )
        require_output(self.name, limit, self.max_output)
        if settings and self.provider:
            require_room(self.name, settings, limit)
        if self.wires is not None:
            self.wires.require(self.name, request.stop)
        return Request(  # spelled out: this is on the path of every call, and `replace` is slow
            messages=request.messages,
            system=request.system or self.system,
            tools=request.tools,
            max_tokens=limit,
            temperature=self.temperature if request.temperature is None else request.temperature,
            top_p=request.top_p,
            seed=self.seed if request.seed is None else request.seed,
            stop=request.stop,
            cache=request.cache,
            shared=request.shared,
            schema=request.schema,
            context=request.context,
            environment=request.environment,
            settings=settings,
            volatile=request.volatile,
        )

    def media_tokens(self, request: Request) -> int:
        """Return the most tokens that the images and documents of a request count."""
        return self.media.tokens(request.media) if self.media is not None and request.has_media else 0

    def require_thinking(self, settings: Mapping[str, Json]) -> None:
        """Raise BadConfiguration for an effort or a kind of thinking that the model does not take."""
        require_settings(self.name, settings)
        if self.capabilities is not None:
            self.capabilities.require(self.name, settings)

    def _require_settable(self, settings: Mapping[str, Json]) -> None:
        unknown = sorted(set(settings) - self.settable)
        if unknown:
            can = f"it can set {', '.join(sorted(self.settable))}" if self.settable else f"leave out {unknown[0]}"
            raise BadConfiguration(f"{unknown[0]} cannot be set for agent {self.name!r}", suggestions=(can,))


def _left_of_phase(request: Request) -> float | None:
    """Return the seconds that a request says are left, in whole ones; None when it says nothing, as 0 does."""
    said = {**(request.context or {}), **request.volatile}.get(PHASE_SECONDS)
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said < float("inf"):
        return None
    return float(ceil(said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the user's own that is run as an agent; without a shell."""

    argv: tuple[str, ...]
    folder: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)  # besides PATH and LANG
    # Codes with which it ends when it has done its work; then its output counts even when there is none. A checker
    # that found something ends with 1. None: only 0, and it must say something.
    exits: tuple[int, ...] | None = None
    quotes: bool = False  # it may quote files: what looks like a secret is taken out before anything is kept

    @property
    def name(self) -> str:
        """The command as a person would type it."""
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The most one attempt can cost, and the tokens it counts for in the limiter."""

    most: Microdollars
    tokens: int
    standard: Price | None = None  # what the standard tier costs, where flex may serve instead
