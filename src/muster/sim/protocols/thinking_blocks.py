"""Thinking in Messages requests: what a model refuses, and the thinking blocks that come back.

A block is bound to its model and, for current models, to what stands before it: system, tools and earlier messages,
without cache marks, effort, `max_tokens` and `tool_choice`. A block of another model is left out without a word. One
that stands elsewhere is an error, and in a batch it is left out too, unless the request says otherwise.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.canonical import Json, canonical
from muster.domain.script import count_tokens
from muster.sim.protocols.ask import SimRefusal, ThinkingPlan
from muster.sim.protocols.models import (
    ADAPTIVE,
    BETWEEN_TOOLS,
    DISABLED,
    ENABLED,
    UNKNOWN_MODEL,
    SimModel,
    anthropic_model,
)
from muster.sim.protocols.thinking import Seal, follows, is_of, is_whole, open_seal

MIN_BUDGET = 1_024
DISPLAYS = ("summarized", "omitted")
BEHAVIORS = ("error", "drop_block")
SAMPLING = {"temperature": 1, "top_p": 1, "top_k": None}  # with the values that every model takes
KINDS = {"thinking": "signature", "redacted_thinking": "data"}

Block = Mapping[str, Any]


def plan_of(body: Block, *, batch: bool) -> ThinkingPlan:
    """Plan the thinking of a request; raises SimRefusal for what its model does not take."""
    model = anthropic_model(body["model"])
    config = body.get("thinking")
    if config is None:
        config = {"type": ADAPTIVE if model.thinks else DISABLED}
    if not isinstance(config, dict) or config.get("type") not in (ADAPTIVE, BETWEEN_TOOLS, DISABLED, ENABLED):
        raise SimRefusal(400, "thinking.type: Input should be 'adaptive', 'between_tools', 'disabled' or 'enabled'")
    effort = _effort(body, model)
    on = config["type"] in (ADAPTIVE, ENABLED)
    if body.get("thinking") is not None:
        _check_type(config["type"], effort, model)
    _check_limits(body, model)
    _check_choices(body, model, forced=config["type"] != ENABLED)
    most = _budget(config, body["max_tokens"]) if config["type"] == ENABLED else None
    return _Returned(body, model, drops=_drops(config, batch)).plan(
        effort=effort if on else None, most=most, shown=_shown(config, model)
    )


def _effort(body: Block, model: SimModel) -> str:
    config = body.get("output_config")
    effort = config.get("effort") if isinstance(config, dict) else None
    if effort is None:
        return model.effort
    if not model.efforts:
        raise SimRefusal(400, "This model does not support the effort parameter.")
    if effort not in model.efforts:
        raise SimRefusal(400, f"output_config.effort: {effort!r} is not one of {', '.join(model.efforts)}")
    return str(effort)


def _check_type(kind: str, effort: str, model: SimModel) -> None:
    if kind not in model.thinking:
        other = (
            'To turn thinking off on this model, send "thinking": {"type": "between_tools"}.'
            if kind == DISABLED and BETWEEN_TOOLS in model.thinking
            else f'Use "thinking.type.{ADAPTIVE if ADAPTIVE in model.thinking else ENABLED}"'
            + (' and "output_config.effort" to control thinking behavior.' if model.efforts else ".")
        )
        raise SimRefusal(400, f'"thinking.type.{kind}" is not supported for this model. {other}')
    if kind in (DISABLED, BETWEEN_TOOLS) and model.efforts and effort not in model.off_at:
        raise SimRefusal(
            400, f'"thinking.type.{kind}" is not supported at effort "{effort}". Use effort "high" or lower.'
        )


def _check_limits(body: Block, model: SimModel) -> None:
    if model is not UNKNOWN_MODEL and body["max_tokens"] > model.max_output:
        limit = f"{body['max_tokens']} > {model.max_output}"
        raise SimRefusal(400, f"max_tokens: {limit}, which is the maximum allowed number of output tokens")


def _check_choices(body: Block, model: SimModel, *, forced: bool) -> None:
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("tool", "any"):
        if not model.forced_tools:
            raise SimRefusal(400, 'tool_choice: type "tool" and "any" are not supported for this model.')
        if not forced:
            raise SimRefusal(400, "Thinking may not be enabled when tool_choice forces tool use.")
    for name, usual in SAMPLING.items():
        if not model.sampling and body.get(name) not in (None, usual):
            raise SimRefusal(400, f"`{name}` is deprecated for this model.")
    if not model.prefill and body["messages"][-1].get("role") == "assistant":
        raise SimRefusal(
            400,
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )


def _budget(config: Block, max_tokens: int) -> int:
    budget = config.get("budget_tokens")
    if not isinstance(budget, int) or budget < MIN_BUDGET:
        raise SimRefusal(400, f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_BUDGET}")
    if budget >= max_tokens:
        raise SimRefusal(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return budget


def _shown(config: Block, model: SimModel) -> bool:
    display = config.get("display")
    if display not in (None, *DISPLAYS):
        raise SimRefusal(400, "thinking.display: Input should be 'summarized' or 'omitted'")
    return model.shown if display is None else display == "summarized"


def _drops(config: Block, batch: bool) -> bool:
    binding = config.get("block_binding")
    behavior = binding.get("prefix_mismatch_behavior") if isinstance(binding, dict) else None
    if behavior not in (None, *BEHAVIORS):
        raise SimRefusal(
            400, "thinking.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'"
        )
    return batch if behavior is None else behavior == "drop_block"


class _Returned:
    """Walks through a conversation and looks at each thinking block in it."""

    def __init__(self, body: Block, model: SimModel, *, drops: bool) -> None:
        self._body, self._model, self._drops = body, model, drops
        self._prefix = hashlib.sha256()
        self._previous = b""
        self._broken = False  # a block stood elsewhere, so those after it do too
        self._returned = self._mismatched = self._kept = 0
        self._refusal: SimRefusal | None = None

    def plan(self, *, effort: str | None, most: int | None, shown: bool) -> ThinkingPlan:
        """Return the plan for the request with all that was found in it."""
        self._pass([_bare(tool) for tool in self._body.get("tools") or ()], _plain(self._body.get("system") or []))
        for index, message in enumerate(self._body["messages"]):
            for place, block in enumerate(_blocks(message)):
                if block["type"] in KINDS:
                    self._look(block, f"messages.{index}.content.{place}")
            self._pass(message["role"], _plain(message["content"]))
        return ThinkingPlan(
            effort=effort,
            most=most,
            shown=shown,
            prefix=self._prefix.digest(),
            previous=self._previous,
            kept=self._kept,
            returned=self._returned,
            missing=0 if effort is None else _missing(self._body["messages"]),
            mismatched=self._mismatched,
            refusal=self._refusal,
        )

    def _pass(self, *values: Json) -> None:
        self._prefix.update(canonical(values))

    def _look(self, block: Block, where: str) -> None:
        field = KINDS[block["type"]]
        text = str(block.get("thinking") or "")
        found = open_seal(block.get(field))
        if found is None or not is_whole(found, text):
            self._refuse(f"{where}: Invalid `{field}` in `{block['type']}` block")
        elif not is_of(found, self._body["model"]):
            self._mismatched += 1
            return
        elif self._stands_elsewhere(found):
            self._broken = True
            self._refuse(
                f"{where}: Invalid `{field}` in `{block['type']}` block. The block is bound to a different "
                "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                '"drop_block".',
                dropped=self._drops,
            )
        else:
            self._returned += 1
            self._kept += count_tokens(text) + count_tokens(str(block[field]))
        self._previous = found.name if found else self._previous

    def _stands_elsewhere(self, found: Seal) -> bool:
        return self._model.bound and (self._broken or not follows(found, self._prefix.digest(), self._previous))

    def _refuse(self, message: str, *, dropped: bool = False) -> None:
        self._mismatched += 1
        if self._refusal is None and not dropped:
            self._refusal = SimRefusal(400, message)


def _missing(messages: list[Block]) -> int:
    """Count the answers of the turn that is going on which used tools and have no thinking before that."""
    return sum(
        not any(block["type"] in KINDS for block in _blocks(message))
        for message in _turn(messages)
        if any(block["type"] == "tool_use" for block in _blocks(message))
    )


def _turn(messages: list[Block]) -> Iterator[Block]:
    """Yield the answers after the last thing that a person said, which is no result of a tool."""
    for message in reversed(messages):
        if message["role"] == "assistant":
            yield message
        elif message["role"] == "user" and not any(block["type"] == "tool_result" for block in _blocks(message)):
            return


def _blocks(message: Block) -> list[Block]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _plain(content: Any) -> list[Json]:
    """Return content as it binds thinking: as blocks, without thinking and without cache marks."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_bare(block) for block in blocks if block.get("type") not in KINDS]


def _bare(block: Block) -> Block:
    return {name: value for name, value in block.items() if name != "cache_control"}
