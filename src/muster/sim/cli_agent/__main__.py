"""`python -m muster.sim.cli_agent`: reads its arguments, its environment and the prompt, and plays."""

import argparse
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence

from muster.sim.cli_agent.behaviors import behavior_of
from muster.sim.cli_agent.player import PlayedCall, Player
from muster.sim.cli_agent.script import BadScript, Step, choose, load
from muster.sim.cli_agent.session import CallLog, LineWriter, SessionMemory, UnknownSession


def main(arguments: Sequence[str] | None = None) -> int:
    """Play one call, and give the exit code."""
    given = _parser(os.environ).parse_args(arguments)
    prompt = sys.stdin.buffer.read().decode("utf-8", "backslashreplace") if given.prompt is None else given.prompt
    memory = SessionMemory(given.state)
    try:
        call = _call(given, prompt, memory)
    except BadScript as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except UnknownSession as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return Player(call, LineWriter(), memory, CallLog(given.audit, prompt, call.session)).run()


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m muster.sim.cli_agent",
        description="Play a CLI agent.",
        formatter_class=_narrow,  # one that asks for the width of the terminal loads four milliseconds of modules
    )
    parser.add_argument("prompt", nargs="?", help="else it is read from standard input")
    parser.add_argument("--script", help="a JSON file with rules and steps; else the prompt names a mood: MOOD:hang")
    parser.add_argument("--model", default="scripted", help="the name that it says it has")
    parser.add_argument("--max-budget-usd", type=float, help="answer that it failed when it cost more")
    parser.add_argument("--session-id", help="else it is made from the prompt and the folder")
    parser.add_argument("--resume", metavar="ID", help="go on with a session")
    parser.add_argument("--allow-tool", metavar="NAME", action="append", default=[], help="need not be asked for")
    parser.add_argument(
        "--mcp-config", metavar="FILE", default=environment.get("MUSTER_MCP_CONFIG"), help="MCP servers"
    )
    parser.add_argument("--state", metavar="DIR", default=environment.get("SCRIPTED_CLI_STATE"), help="keep sessions")
    parser.add_argument("--audit", metavar="FILE", default=environment.get("SCRIPTED_CLI_AUDIT"), help="append a log")
    return parser


def _narrow(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, width=100)


def _call(given: argparse.Namespace, prompt: str, memory: SessionMemory) -> PlayedCall:
    return PlayedCall(
        prompt=prompt,
        steps=_steps(given.script, prompt),
        session=given.resume or given.session_id or _session(prompt),
        model=given.model,
        budget=given.max_budget_usd,
        before=memory.turns(given.resume) if given.resume else 0,
        allowed=given.allow_tool,
        mcp_config=given.mcp_config,
    )


def _steps(script: str | None, prompt: str) -> Sequence[Step]:
    chosen = None if script is None else choose(load(script), prompt)
    return behavior_of(prompt) if chosen is None else chosen


def _session(prompt: str) -> str:
    """Name a session by its first prompt and its folder, in the form of a UUID."""
    named = f"{os.getcwd()}\n{prompt}".encode("utf-8", "backslashreplace")  # noqa: PTH109
    found = hashlib.sha256(named).hexdigest()
    return "-".join((found[:8], found[8:12], found[12:16], found[16:20], found[20:32]))


if __name__ == "__main__":
    sys.exit(main())
