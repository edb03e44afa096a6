"""What a conversation came to."""

from dataclasses import replace
from typing import Any

import pytest

from muster.agents.claude_code.conversation import ClaudeConversation, ClaudeResult, read_result
from muster.agents.claude_code.outcome import ClaudeExit, ClaudeTerms, read_outcome
from muster.domain.call import Quality, Reply, Stop, Usage
from muster.domain.canonical import Json
from muster.domain.errors import (
    AgentFailed,
    AuthRefused,
    BadOutput,
    InvalidRequest,
    Overloaded,
    Paid,
    PermissionAsked,
    RateLimited,
    WireError,
)
from muster.domain.money import NOTHING, Lane, Microdollars

TERMS = ClaudeTerms(agent="coder", most=Microdollars(1_000_000), lane=Lane.BILLED, key_variable="MY_KEY")
SCHEMA: dict[str, Json] = {"type": "object"}


def result(**fields: Any) -> ClaudeResult:
    base: dict[str, Any] = {
        "subtype": "success",
        "result": "Done.",
        "session_id": "s",
        "num_turns": 2,
        "total_cost_usd": 0.0123,
    }
    found = read_result({"type": "result", **base, **fields})
    assert found is not None
    return found


def outcome(terms: ClaudeTerms = TERMS, *, using: str | None = None, asking: str | None = None, **fields: Any) -> Reply:
    conversation = ClaudeConversation()
    if using is not None:
        conversation.receive(
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "a", "name": using}]}}
        )
    if asking is not None:
        conversation.receive({"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": asking}})
    return read_outcome(terms, conversation, result(**fields), ClaudeExit(log="a word", note="a note"))


def failure(terms: ClaudeTerms = TERMS, **how: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        outcome(terms, **how)
    return caught.value


def test_a_success_is_a_reply_with_its_cost_and_its_trace() -> None:
    reply = outcome()
    assert (reply.text, reply.stop, reply.cost, reply.lane) == ("Done.", Stop.END, 12_300, Lane.BILLED)
    assert reply.trace is not None
    assert (reply.trace.session, reply.trace.turns, reply.trace.log, reply.trace.note) == ("s", 2, "a word", "a note")


def test_a_subscription_is_imputed() -> None:
    terms = replace(TERMS, lane=Lane.IMPUTED)
    assert outcome(terms).lane is Lane.IMPUTED
    failed = failure(terms, subtype="error_max_turns")
    assert (failed.paid, failed.cost, failed.imputed) == (Paid.YES, 12_300, True)


def test_a_success_that_says_no_cost_is_booked_at_its_most() -> None:
    reply = outcome(total_cost_usd=None)
    assert (reply.cost, reply.lane) == (1_000_000, Lane.UNCERTAIN)
    reply = outcome(replace(TERMS, most=NOTHING, lane=Lane.IMPUTED), total_cost_usd=None)
    assert (reply.cost, reply.lane) == (0, Lane.IMPUTED)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("max_tokens", Stop.MAX_TOKENS),
        ("tool_use", Stop.END),
        (None, Stop.END),
        ("new", Stop.OTHER),
    ],
)
def test_it_says_why_the_model_stopped(reason: str | None, stop: Stop) -> None:
    assert outcome(stop_reason=reason).stop is stop


def test_a_refusal_is_a_reply_although_it_is_an_error_to_claude_code() -> None:
    reply = outcome(stop_reason="refusal", is_error=True, result="API Error: it was flagged")
    assert (reply.quality, reply.cost) == (Quality.REFUSED, 12_300)


def test_data_is_given_as_such_and_as_text_in_its_one_spelling() -> None:
    reply = outcome(replace(TERMS, schema=SCHEMA), structured_output={"b": 1, "a": "ü"})
    assert (reply.data, reply.text) == ({"b": 1, "a": "ü"}, '{"a":"ü","b":1}')


def test_no_data_although_it_was_asked_for_is_bad_output_and_paid() -> None:
    failed = failure(replace(TERMS, schema=SCHEMA))
    assert isinstance(failed, BadOutput)
    assert (failed.paid, failed.cost, failed.log) == (Paid.YES, 12_300, "a word")


def test_data_of_another_shape_is_bad_output_and_says_what_is_wrong() -> None:
    terms = replace(TERMS, schema={"required": ["right"]})
    assert outcome(terms, structured_output={"right": True}).data == {"right": True}
    failed = failure(terms, structured_output={"left": True})
    assert isinstance(failed, BadOutput)
    assert "'right' is a required property" in failed.message


@pytest.mark.parametrize("subtype", ["error_max_turns", "error_max_budget_usd", "error_during_execution", "error_new"])
def test_an_error_names_its_kind_its_words_its_tool_and_its_cost(subtype: str) -> None:
    failed = failure(subtype=subtype, errors=["so it is", 7], result=None, using="Bash")
    assert type(failed) is AgentFailed
    assert failed.message == f"agent 'coder': Claude Code ended with {subtype}: so it is"
    own = subtype in ("error_max_turns", "error_max_budget_usd")
    assert (failed.paid, failed.cost) == ((Paid.YES, 12_300) if own else (Paid.NO, 0))  # who knows the quote decides
    assert (failed.tool, failed.log) == ("Bash", "a word")


def test_a_limit_says_how_to_raise_it() -> None:
    assert "max_turns in [agents.coder]" in failure(subtype="error_max_turns").suggestions[0]
    assert "budget_usd" in failure(subtype="error_max_budget_usd").suggestions[0]


def test_a_shape_that_it_cannot_meet_is_bad_output() -> None:
    assert isinstance(failure(subtype="error_max_structured_output_retries"), BadOutput)


def test_an_error_that_says_no_cost_leaves_open_what_was_paid() -> None:
    assert failure(subtype="error_max_turns", total_cost_usd=None).paid is Paid.NO  # whoever knows the quote decides


def test_a_tool_that_needs_permission_is_named_whatever_the_result_says() -> None:
    failed = failure(asking="Bash", subtype="error_during_execution")
    assert isinstance(failed, PermissionAsked)
    assert (failed.tool, failed.cost, failed.paid) == ("Bash", 12_300, Paid.YES)
    assert isinstance(failure(asking="Bash"), PermissionAsked)


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AuthRefused), (429, RateLimited), (529, Overloaded), (400, InvalidRequest)]
)
def test_an_api_that_refuses_the_first_question_is_that_error(status: int, kind: type[WireError]) -> None:
    failed = failure(is_error=True, api_error_status=status, result="API Error: so it is", total_cost_usd=0)
    assert isinstance(failed, kind)
    assert (failed.status, failed.paid, failed.cost) == (status, Paid.NO, 0)


def test_after_an_error_of_the_api_what_was_paid_is_not_known_if_it_had_answered_before() -> None:
    fields: dict[str, Any] = {"is_error": True, "api_error_status": 529, "result": "full"}
    conversation = ClaudeConversation()
    conversation.receive({"type": "assistant", "message": {"model": "m", "content": []}})
    for dollars in (0, 0.01, None):
        with pytest.raises(Overloaded) as caught:
            read_outcome(TERMS, conversation, result(**fields, total_cost_usd=dollars), ClaudeExit())
        assert (caught.value.paid, caught.value.cost) == (Paid.UNKNOWN, 0)


@pytest.mark.parametrize(
    ("status", "paid"), [(None, Paid.UNKNOWN), (502, Paid.UNKNOWN), (429, Paid.NO), (529, Paid.NO)]
)
def test_after_an_error_of_the_api_what_was_paid_is_not_known_if_an_earlier_answer_was_no_refusal(
    status: int | None, paid: Paid
) -> None:
    conversation = ClaudeConversation()
    conversation.receive({"type": "system", "subtype": "api_retry", "error_status": status})
    ended = result(is_error=True, api_error_status=529, result="full", total_cost_usd=0)
    with pytest.raises(Overloaded) as caught:
        read_outcome(TERMS, conversation, ended, ClaudeExit())
    assert caught.value.paid is paid


def test_an_answer_of_the_api_that_it_cannot_read_is_not_free() -> None:
    failed = failure(is_error=True, result="API Error: Unexpected token", total_cost_usd=0)
    assert type(failed) is AgentFailed
    assert failed.paid is Paid.NO  # not YES at 0: the agent knows the quote, and makes it unknown


def test_the_name_of_a_session_is_cut() -> None:
    trace = outcome(session_id="s" * 5_000).trace
    assert trace is not None
    assert trace.session == "s" * 1_000


def test_a_refused_key_names_its_variable_and_a_refused_login_has_none() -> None:
    assert "MY_KEY" in failure(is_error=True, api_error_status=401).suggestions[0]
    failed = failure(replace(TERMS, key_variable=""), is_error=True, api_error_status=401, result="please log in")
    assert isinstance(failed, AuthRefused)
    assert "please log in" in failed.message


def test_an_api_that_fails_later_is_not_asked_again_since_tools_were_used() -> None:
    failed = failure(using="Bash", is_error=True, api_error_status=529, result="API Error: full")
    assert type(failed) is AgentFailed
    assert (failed.status, failed.paid, failed.cost) == (529, Paid.NO, 0)  # who knows the quote decides
    assert "API Error: full" in failed.message


def test_of_a_session_that_is_gone_on_with_only_the_new_part_is_paid() -> None:
    shares = {"a": {"costUSD": 0.001}, "b": {"costUSD": 0.0005}, "c": {}}
    fields: dict[str, Any] = {"total_cost_usd": 0.9, "model_usage_since_last_result": shares}
    assert outcome(**fields).cost == 900_000
    assert outcome(replace(TERMS, resumed=True), **fields).cost == 1_500
    assert outcome(replace(TERMS, resumed=True), total_cost_usd=0.9).cost == 900_000  # rather too much


@pytest.mark.parametrize(
    ("dollars", "micro"),
    [(0, 0), (0.012470000000000002, 12_470), (0.024661999999999996, 24_662), (0.0000001, 1), (1e-7 + 1, 1_000_001)],
)
def test_a_cost_is_rounded_up_but_not_for_the_dust_of_its_fractions(dollars: float, micro: int) -> None:
    assert result(total_cost_usd=dollars).cost(resumed=False) == micro


@pytest.mark.parametrize("dollars", [-0.1, 1e12, float("inf"), float("nan"), None])
def test_a_cost_that_is_none_is_not_known(dollars: float | None) -> None:
    assert result(total_cost_usd=dollars).cost(resumed=False) is None


def test_tokens_are_those_of_the_api() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_read_input_tokens": 11,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_1h_input_tokens": 10, "ephemeral_5m_input_tokens": 20},
    }
    assert outcome(usage=usage).usage == Usage(input=5, output=7, cache_read=11, cache_write=20, cache_write_1h=10)
    assert outcome(usage=None).usage == Usage()


@pytest.mark.parametrize("wrong", [-1, "5", True, 2**60, float("nan"), []])
def test_figures_that_cannot_be_right_leave_the_answer_and_book_the_reservation(wrong: Any) -> None:
    tokens = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = {**dict.fromkeys(tokens, wrong), "cache_creation": {"ephemeral_1h_input_tokens": wrong}}
    assert outcome(usage=usage).usage == outcome(usage=wrong).usage == Usage()
    reply = outcome(total_cost_usd=None if wrong == "5" else wrong)
    assert (reply.text, reply.cost, reply.lane) == ("Done.", TERMS.most, Lane.UNCERTAIN)
