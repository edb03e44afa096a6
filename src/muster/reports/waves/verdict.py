"""What speaks against a verification, in words. It is a success only if nothing does.

Names and reasons are somebody else's words: whoever writes them into a format says how they are quoted there.
"""

from collections.abc import Callable, Iterator, Sequence

from muster.domain.run import RunState
from muster.domain.waves import AgentReport, Ending, WaveReport
from muster.reports.waves.facts import Facts
from muster.reports.words import count, one_line

NAMED = 5  # so many are named in a sentence, the others are counted
LONGEST = 300

Quote = Callable[[str], str]


def plain(text: str) -> str:
    """Quote nothing, but keep to one line."""
    return one_line(text, LONGEST)


def listed(names: Sequence[str], quote: Quote) -> str:
    """Name some, and count the others."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(quote(name) for name in names[:NAMED]) + more


def because(why: str, quote: Quote) -> str:
    """Write a reason, as far as there is one."""
    return f": {quote(why)}" if why else ""


def looked(agent: AgentReport) -> bool:
    """Say whether an agent has looked at all that was for it."""
    return agent.ending in (Ending.PASSED, Ending.FAILED) and agent.answered == agent.chunks > 0


def fine(agent: AgentReport) -> bool:
    """Say whether an agent has nothing against the files; that it passed is believed only if its numbers say so too."""
    if agent.ending is Ending.IDLE:
        return agent.chunks == 0
    return agent.ending is Ending.PASSED and looked(agent) and all(held.holds for held in agent.thresholds)


def run_flaws(run: Facts, quote: Quote) -> Iterator[str]:
    """Say that a run has not come to its end, or exceeded a budget."""
    if run.state is not RunState.COMPLETED:
        state = "timed out" if run.state is RunState.TIMEOUT else f"is {run.state}"
        yield f"the run {state}{because(run.error, quote)}"
    elif run.error:
        yield f"a budget is exceeded{because(run.error, quote)}"


def agent_flaws(agents: Sequence[AgentReport], quote: Quote) -> Iterator[str]:
    """Say which agents did not pass, and why."""
    bad = [agent for agent in agents if not fine(agent)]
    for agent in bad[:NAMED]:
        yield f"agent {quote(agent.agent)} {_ending(agent)}{because(agent.why, quote)}"
    if len(bad) > NAMED:
        yield f"{count(len(bad) - NAMED, 'more agent')} did not pass"


def _ending(agent: AgentReport) -> str:
    if agent.ending is Ending.FAILED:
        return "failed"
    if agent.ending is Ending.BROKEN:
        return "gave no report that counts"
    return f"is called {agent.ending}, which its own numbers do not bear out"


def wave_flaws(waves: Sequence[WaveReport], quote: Quote) -> Iterator[str]:
    """Say which waves did not pass although all their agents did."""
    bad = [wave for wave in waves if not wave.passed and all(fine(agent) for agent in wave.agents)]
    for wave in bad[:NAMED]:
        yield f"wave {wave.wave} did not pass{because(wave.why, quote)}"
    if len(bad) > NAMED:
        yield f"{count(len(bad) - NAMED, 'more wave')} did not pass"
