"""Tools of a case that an agent really calls: they are scripted, so what they give can be told without calling them."""

from dataclasses import replace

from muster.checks.matching import covers
from muster.domain.call import Quality, Reply, Stop, ToolCall
from muster.domain.case import Case, ScriptedTool


def wants_tools(case: Case, reply: Reply) -> bool:
    """Whether the agent waits for tools of the case; one that uses tools by itself has their results already."""
    return bool(case.tools) and reply.stop is Stop.TOOL_USE and bool(reply.tool_calls)


def quality_in(case: Case, reply: Reply) -> Quality:
    """Return the quality of a reply to a case: what ends a turn is text, or a call of a tool that the case knows."""
    if wants_tools(case, reply):
        return reply.quality
    return reply.quality_given({*(tool.name for tool in case.tools), *(one.tool for one in case.tool_sequence)})


def use(tools: tuple[ScriptedTool, ...], call: ToolCall) -> ToolCall:
    """Give a call with what its tool says; a tool that is not there, or has nothing to say to it, fails."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return replace(call, result=f"error: there is no tool {call.name!r}", failed=True)
    for scripted in tool.results:
        if covers(call.arguments, scripted.args_match):
            return replace(call, result=scripted.result, failed=False)
    return replace(call, result=f"error: {call.name} has no result for these arguments", failed=True)
