"""Calls that failed and are a value: the run goes on. Whatever stops a run is none of them and passes through."""

from muster.domain.errors import CallFailed, RetriesExhausted, TryLater, WireError

FAILED_CALL = (CallFailed, TryLater)


def cause_of(error: WireError) -> WireError:
    """Give what really went wrong: of many attempts the last, as the journal has it, so that a replay says the same."""
    while isinstance(error, RetriesExhausted):
        error = error.last
    return error


def code_of(error: WireError) -> str:
    """Give the code of what went wrong, as the journal has it."""
    return str(cause_of(error).record().get("code", error.code))


def words_of(error: WireError) -> str:
    """Say what went wrong."""
    record = cause_of(error).record()
    return f"{record.get('message', 'failed')} ({record.get('code', error.code)})"
