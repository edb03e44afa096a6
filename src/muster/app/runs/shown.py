"""Runs and calls of tasks as they are shown: without the secrets that can be told by their look. Pure.

The agent of a task may read files with keys in them, and name one in its answer, its log or the name of a file. The
store, and what is exported from it, keep what was said.
"""

from collections.abc import Iterable
from dataclasses import replace

from muster.app.kinds import BUILT_IN, kind_of
from muster.app.runs.details import CallDetails, RunDetails
from muster.domain.call import Reply
from muster.domain.entry import Entry, Event
from muster.domain.run import Run
from muster.store.base import Attempt
from muster.text.secrets.redaction import Redactor

REDACTED_EVENTS = tuple(f"{kind.workload}." for kind in BUILT_IN if kind.redacts)


def shown_run(run: Run) -> Run:
    """Return a run as it is shown; only a task is another one."""
    if not kind_of(run).redacts:
        return run
    return replace(run, result=Redactor().json(run.result), error=Redactor().json(run.error))


def shown_details(found: RunDetails) -> RunDetails:
    """Return a run with its calls and events as they are shown."""
    if not kind_of(found.run).redacts:
        return found
    return replace(
        found,
        run=shown_run(found.run),
        calls=None if found.calls is None else shown_entries(found.run, found.calls),
        uncertain=_attempts(found.uncertain),
        events=None if found.events is None else tuple(map(shown_event, found.events)),
    )


def shown_call(run: Run, found: CallDetails) -> CallDetails:
    """Return a call of a run as it is shown."""
    if not kind_of(run).redacts:
        return found
    return replace(found, entry=_entry(found.entry), attempts=_attempts(found.attempts))


def shown_entries(run: Run, found: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return calls of a run as they are shown."""
    return tuple(_entry(one) if kind_of(run).redacts else one for one in found)


def shown_event(event: Event) -> Event:
    """Return an event as it is shown: errors may quote an agent, and so may what a task tells."""
    if "error" not in event.data and not event.kind.startswith(REDACTED_EVENTS):
        return event
    return replace(event, data=Redactor().json(event.data))


def _entry(entry: Entry) -> Entry:
    clean = Redactor().json
    reply = None if entry.reply is None else _reply(entry.reply)
    return replace(entry, request=clean(entry.request), reply=reply, value=clean(entry.value), error=clean(entry.error))


def _reply(reply: Reply) -> Reply:
    redactor = Redactor()
    clean, trace = redactor.text, reply.trace
    return replace(
        reply,
        text=clean(reply.text),
        data=redactor.json(reply.data),
        data_error=clean(reply.data_error),
        tool_calls=tuple(
            replace(one, arguments=redactor.json(one.arguments), result=redactor.json(one.result))
            for one in reply.tool_calls
        ),
        trace=None if trace is None else replace(trace, log=clean(trace.log), note=clean(trace.note)),
    )


def _attempts(found: Iterable[Attempt]) -> tuple[Attempt, ...]:
    return tuple(replace(one, error=Redactor().json(one.error)) for one in found)
