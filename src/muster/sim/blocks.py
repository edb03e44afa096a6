"""Content as both protocols send it: a text, or a list of blocks."""

from muster.domain.canonical import Json
from muster.sim.ask import Refused


def blocks_of(content: Json, where: str) -> list[dict[str, Json]]:
    """Give content as blocks, or refuse it with its place."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Refused(400, f"{where}: Input should be a valid string or list", param=where)
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise Refused(400, f"{where}.{index}.type: Field required", param=where)
    return content


def text_in(content: Json, where: str) -> str:
    """Give the text of a whole content."""
    if isinstance(content, str):
        return content
    return "".join(text_of(block, where) for block in blocks_of(content, where))


def text_of(block: dict[str, Json], where: str) -> str:
    """Give the text of a block; blocks that hold none (pictures, tools asked for) count as empty."""
    if block["type"] == "tool_result":
        return text_in(block.get("content") or "", f"{where}.content")
    if block["type"] != "text":
        return ""
    if not isinstance(block.get("text"), str):
        raise Refused(400, f"{where}.text: Input should be a valid string", param=where)
    return str(block["text"])
