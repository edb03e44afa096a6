"""What the SDK is told for one call, in its own words. Pure."""

from typing import Any

from muster.agents.bill import Bill
from muster.agents.claude_code.setup import Setup
from muster.agents.volatile import folder_of, session_of
from muster.domain.call import Request
from muster.domain.money import Microdollars

ATTENDED = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")  # they wait for a person, and there is none


def options_of(setup: Setup, request: Request, most: Microdollars, *, streams: bool) -> dict[str, Any]:
    """Give the options of a call."""
    return {
        "model": setup.model,
        "fallback_model": setup.fallback_model,
        "effort": setup.effort,
        "max_turns": setup.max_turns,
        "max_budget_usd": float(Bill(most=most).told) if most else None,
        "system_prompt": _system(request.system),
        "resume": session_of(request),
        "output_format": None if request.schema is None else {"type": "json_schema", "schema": dict(request.schema)},
        "include_partial_messages": streams,
        "permission_mode": setup.permission_mode,
        "permission_prompt_tool_name": "stdio",  # whoever drives it is asked
        "allowed_tools": list(setup.allowed_tools),
        "disallowed_tools": [*setup.disallowed_tools, *(name for name in ATTENDED if name not in setup.allowed_tools)],
        "mcp_servers": _servers(setup),
        # Nothing that lies about in folders changes what it does.
        "strict_mcp_config": True,
        "setting_sources": [],
        "cwd": str(folder_of(request, setup.folder)),
    }


def _servers(setup: Setup) -> str | dict[str, Any]:
    """Name the file that tells of them, which is not for everybody's eyes, as a command line is."""
    servers = setup.mcp_servers
    return str(servers.file) if servers is not None and servers.declared else {}


def _system(system: str) -> dict[str, str]:
    """Keep its own instructions, without which it does not know its tools; ours come after them."""
    preset = {"type": "preset", "preset": "claude_code"}
    return preset | {"append": system} if system else preset
