"""The scripted agent: answers from a script, needs no key and no network. For rehearsals, demos and tests."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from muster.agents.base import OnDelta
from muster.domain.agent import DEFAULT_MAX_TOKENS, Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Role, Stop, Timings, Tool, ToolCall, identify
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration, InvalidRequest, Overloaded, TimedOut, did_you_mean
from muster.domain.flaw import nearest
from muster.domain.money import NOTHING
from muster.domain.price import Price
from muster.domain.script import Line, Script, usage_of

Sleep = Callable[[float], Awaitable[object]]
Observer = Callable[[Request], None]

_WORD = re.compile(r"\s*\S+\s*|\s+")
_ECHO = Script()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedBehavior:
    """What a scripted agent plays: its lines, its delays and its failures."""

    script: Script = _ECHO
    fails: bool = False  # every attempt is refused
    flaky: bool = False  # the first attempt at each request meets an overloaded provider
    uses_tools: bool = False  # calls a tool whenever it is given some and has no result yet
    seconds: float = 0.0  # before it answers


BEHAVIORS = {
    "echo": ScriptedBehavior(),
    "refuse": ScriptedBehavior(script=Script(otherwise=Line(text="I will not help with that.", stop=Stop.REFUSED))),
    "cut": ScriptedBehavior(script=Script(otherwise=Line(text="{text}", stop=Stop.MAX_TOKENS))),
    "empty": ScriptedBehavior(script=Script(otherwise=Line())),
    "tool": ScriptedBehavior(uses_tools=True),
    "fail": ScriptedBehavior(fails=True),
    "flaky": ScriptedBehavior(flaky=True),
    "slow": ScriptedBehavior(seconds=1.0),
}


class ScriptedAgent:
    """An agent that plays a part; the same request always gets the same reply."""

    def __init__(
        self,
        behavior: ScriptedBehavior,
        *,
        profile: Profile,
        price: Price | None = None,
        sleep: Sleep = asyncio.sleep,
        observe: Observer | None = None,
    ) -> None:
        self._behavior, self._profile, self._price = behavior, profile, price
        self._sleep, self._observe = sleep, observe
        self._tried: set[str] = set()  # digests, for the flaky part

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt; nothing, unless a price was given."""
        sent = usage_of(request.messages, request.system, Line()).input
        allowed = _max_tokens(request)
        most = NOTHING if self._price is None else self._price.most(sent, allowed)
        return Quote(most=most, tokens=sent + allowed)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Play the part once."""
        if self._observe is not None:
            self._observe(request)
        if self._behavior.seconds:
            await self._sleep(min(self._behavior.seconds, timeouts.call))
            if self._behavior.seconds > timeouts.call:
                raise TimedOut(f"{self._profile.name}: timed out after {timeouts.call:g}s")
        self._fail_as_scripted(request)
        line = self._line(request)
        if on_delta is not None:
            for word in _WORD.findall(line.text):
                on_delta(word)
        return self._reply(request, line)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _fail_as_scripted(self, request: Request) -> None:
        if self._behavior.fails:
            raise InvalidRequest(f"{self._profile.name} always fails; that is its purpose", status=400)
        if not self._behavior.flaky:
            return
        digest = identify(self._profile.name, request).digest
        if digest not in self._tried:
            self._tried.add(digest)
            raise Overloaded(f"{self._profile.name} fails the first attempt at every request", status=529)

    def _line(self, request: Request) -> Line:
        if self._behavior.uses_tools and request.tools and request.messages[-1].role is not Role.TOOL:
            return _use_tool(request)
        return self._behavior.script.answer(self._profile.name, request.messages, _max_tokens(request))

    def _reply(self, request: Request, line: Line) -> Reply:
        counted = usage_of(request.messages, request.system, line)
        usage = replace(counted, output=min(counted.output, _max_tokens(request)))
        return Reply(
            text=line.text,
            stop=line.stop,
            tool_calls=line.tool_calls,
            usage=usage,
            cost=NOTHING if self._price is None else self._price.cost(usage),
            model=self._profile.name,
            id=f"sim_{identify(self._profile.name, request).digest[:12]}",
            timings=Timings(wire=self._behavior.seconds),
        )


def scripted(
    name: str,
    *,
    script: Script | None = None,
    profile: Profile | None = None,
    price: Price | None = None,
    sleep: Sleep = asyncio.sleep,
    observe: Observer | None = None,
) -> ScriptedAgent:
    """Make the agent `sim/NAME`; with a script of your own, any name will do."""
    behavior = (
        BEHAVIORS.get(name) if script is None else replace(BEHAVIORS.get(name, ScriptedBehavior()), script=script)
    )
    if behavior is None:
        known = ", ".join(f"sim/{known}" for known in BEHAVIORS)
        near = [f"sim/{close}"] if (close := nearest(name, BEHAVIORS)) else []
        raise BadConfiguration(
            f"unknown scripted agent sim/{name}", suggestions=(*did_you_mean(near), f"scripted agents: {known}")
        )
    profile = profile or Profile(name=f"sim/{name}", limiter=f"sim:{name}", provider="sim", model=name)
    return ScriptedAgent(behavior, profile=profile, price=price, sleep=sleep, observe=observe)


def _use_tool(request: Request) -> Line:
    text = request.messages[-1].text
    tool = next((tool for tool in request.tools if tool.name in text), request.tools[0])
    turn = 1 + sum(message.role is Role.ASSISTANT for message in request.messages)
    call = ToolCall(id=f"call_{turn}", name=tool.name, arguments=_arguments(tool, text))
    return Line(tool_calls=(call,), stop=Stop.TOOL_USE)


def _arguments(tool: Tool, text: str) -> dict[str, Json]:
    """Return the text to every parameter that must be a string."""
    properties = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    return {name: text for name in required if properties.get(name, {}).get("type") == "string"}


def _max_tokens(request: Request) -> int:
    return DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens
