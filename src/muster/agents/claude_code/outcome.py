"""What a conversation with Claude Code came to: a reply, or the error of the tree that says why not. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.agents.claude_code.conversation import ClaudeConversation, ClaudeResult
from muster.agents.faults import MAX_MESSAGE, kind_of
from muster.agents.local import MAX_SESSION
from muster.agents.usage import OWN_LIMITS, ProcessBill
from muster.domain.call import Reply, Stop, Timings, Trace
from muster.domain.canonical import Json, canonical
from muster.domain.errors import AgentFailed, AuthRefused, BadOutput, Paid, PermissionAsked, WireError
from muster.domain.money import Lane, Microdollars
from muster.text.schemas.json_schema import MAX_FLAWS, fitting

_UNTIMED = Timings()
_STOPS = {
    "refusal": Stop.REFUSED,
    "max_tokens": Stop.MAX_TOKENS,
    "model_context_window_exceeded": Stop.MAX_TOKENS,
    "stop_sequence": Stop.SEQUENCE,
    "end_turn": Stop.END,
    "tool_use": Stop.END,  # of a tool of its own, the one for structured output too
    "": Stop.END,  # versions that give no reason say by a successful result that they are done
}
_UNSHAPED = "error_max_structured_output_retries"
_ADVICE = {
    "error_max_turns": "raise max_turns",
    "error_max_budget_usd": "raise budget_usd, of which it may use 80 percent",
    _UNSHAPED: "simplify the schema",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeTerms:
    """What a call was asked for, and who pays."""

    agent: str
    most: Microdollars
    lane: Lane
    key_variable: str = ""
    schema: Mapping[str, Json] | None = None
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeExit:
    """What the process left behind besides its frames."""

    log: str = ""
    note: str = ""
    timings: Timings = _UNTIMED


def read_outcome(
    terms: ClaudeTerms, conversation: ClaudeConversation, result: ClaudeResult, ending: ClaudeExit
) -> Reply:
    """Read a conversation that ended with a result."""
    if conversation.asked is not None:
        raise permission_asked(terms, conversation, ending.log, result.cost(resumed=terms.resumed))
    if result.stop_reason == "refusal":
        return _reply(terms, conversation, result, ending, result.result or "")
    if result.is_error or result.subtype != "success":
        raise _failure(terms, conversation, result, ending.log)
    if terms.schema is None:
        return _reply(terms, conversation, result, ending, result.result or "")
    data = _data(terms, terms.schema, result, ending.log)
    return _reply(terms, conversation, result, ending, canonical(data).decode("utf-8", "surrogatepass"), data)


def permission_asked(
    terms: ClaudeTerms, conversation: ClaudeConversation, log: str, cost: Microdollars | None = None
) -> PermissionAsked:
    """Return the error with the tool that it asked permission for."""
    tool = conversation.asked
    return PermissionAsked(
        f"agent {terms.agent!r}: Claude Code asked for permission to use {tool}, which cannot be granted here",
        log=log,
        tool=tool,
        arguments=conversation.asked_arguments,
        session=conversation.session,
        cost=cost,
        imputed=terms.lane is Lane.IMPUTED,
        suggestions=(
            f'allow it: allowed_tools = ["{tool}"] in [agents.{terms.agent}]',
            'or continue without it: permission_mode = "dontAsk"',
        ),
    )


def key_refused(terms: ClaudeTerms, status: int) -> WireError:
    """Return the error for a key that the API does not accept."""
    return AuthRefused(
        f"agent {terms.agent!r}: the API answered {status}: it does not accept this key",
        status=status,
        suggestions=(f"set {terms.key_variable} to a key that is valid here",),
    )


def _data(terms: ClaudeTerms, schema: Mapping[str, Json], result: ClaudeResult, log: str) -> Any:
    try:
        if result.structured_output is None:
            raise BadOutput("it returned no data, although a schema was given")
        return fitting(result.structured_output, schema, most=MAX_FLAWS)
    except BadOutput as error:
        again = BadOutput(
            f"agent {terms.agent!r}: {error.message}",
            log=log,
            cost=result.cost(resumed=terms.resumed),
            imputed=terms.lane is Lane.IMPUTED,
        )
        given = result.structured_output
        again.flaw = error.message
        again.answer = (result.result or "") if given is None else canonical(given).decode()
        raise again from error


def _failure(terms: ClaudeTerms, conversation: ClaudeConversation, result: ClaudeResult, log: str) -> WireError:
    if result.api_error_status is not None and not conversation.calls:
        return _api_failure(terms, conversation, result, result.api_error_status)
    kind = BadOutput if result.subtype == _UNSHAPED else AgentFailed
    what = result.subtype if result.subtype != "success" else "an error of the API"
    why = f": {result.why[:MAX_MESSAGE]}" if result.why else ""
    return kind(
        f"agent {terms.agent!r}: Claude Code ended with {what}{why}",
        log=log,
        tool=conversation.tool,
        cost=_sure(terms, result),
        imputed=terms.lane is Lane.IMPUTED,
        status=result.api_error_status,
        suggestions=(f"{_ADVICE[result.subtype]} in [agents.{terms.agent}]",) if result.subtype in _ADVICE else (),
    )


def _api_failure(terms: ClaudeTerms, conversation: ClaudeConversation, result: ClaudeResult, status: int) -> WireError:
    """Return what the API refused before anything was done: a retry is harmless."""
    kind = kind_of(status)
    if issubclass(kind, AuthRefused) and terms.key_variable:
        error = key_refused(terms, status)
    else:
        error = kind(f"agent {terms.agent!r}: Claude Code: {result.why[:MAX_MESSAGE]}", status=status)
    if cost := _sure(terms, result):
        error.paid, error.cost, error.imputed = Paid.YES, cost, terms.lane is Lane.IMPUTED
    elif terms.most and (conversation.answered or conversation.unclear or result.cost(resumed=terms.resumed)):
        error.paid = Paid.UNKNOWN
    return error


def _sure(terms: ClaudeTerms, result: ClaudeResult) -> Microdollars | None:
    """Return the cost of a failure, if it counts: at a limit of its own, or not below what was reserved."""
    cost = result.cost(resumed=terms.resumed)
    return cost if cost is not None and (result.subtype in OWN_LIMITS or cost >= terms.most) else None


def _reply(
    terms: ClaudeTerms,
    conversation: ClaudeConversation,
    result: ClaudeResult,
    ending: ClaudeExit,
    text: str,
    data: Json = None,
) -> Reply:
    cost, lane = ProcessBill(most=terms.most, lane=terms.lane).settle(result.cost(resumed=terms.resumed))
    return Reply(
        text=text,
        stop=_STOPS.get(result.stop_reason or "", Stop.OTHER),
        tool_calls=conversation.calls,
        usage=result.tokens,
        cost=cost,
        lane=lane,
        model=conversation.model,
        id=conversation.id,
        timings=ending.timings,
        data=data,
        trace=Trace(session=result.session_id[:MAX_SESSION], turns=result.num_turns, log=ending.log, note=ending.note),
    )
