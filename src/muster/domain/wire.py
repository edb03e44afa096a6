"""In which form of its API a model is asked: OpenAI has two, and only Responses takes reasoning back."""

from dataclasses import dataclass
from enum import StrEnum

from muster.domain.call import Request
from muster.domain.effort import EXTRA
from muster.domain.errors import BadConfiguration

FAMILY = "openai"  # what blocks of answers in any form of this API say they come from, before the form
MIN_OUTPUT = 16  # tokens: Responses refuses a smaller limit


class WireName(StrEnum):
    """The forms of OpenAI's API."""

    CHAT = "chat"  # chat completions, which every compatible server has
    RESPONSES = "responses"

    @property
    def blocks(self) -> str:
        """Return what blocks of answers in this form say they come from; empty: such answers have none."""
        return f"{FAMILY}/{self}" if self is WireName.RESPONSES else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireChoice:
    """In which form a model is asked: the one that is set, or Responses for all that it can say."""

    name: WireName = WireName.RESPONSES
    is_set: bool = False  # by the section of the model, so it is never another

    def of(self, request: Request) -> WireName:
        """Return the form for a request; it depends on the request alone, however often that is sent."""
        return WireName.CHAT if not self.is_set and _needs_chat(request) else self.name

    def require(self, agent: str, stop: tuple[str, ...]) -> None:
        """Raise BadConfiguration for stop sequences where Responses is set; a seed is left out, as for others."""
        if stop and self.is_set and self.name is WireName.RESPONSES:
            raise BadConfiguration(
                f"agent {agent!r} cannot be asked with stop: Responses, which its section sets as wire, has none",
                suggestions=("leave stop out", f'or set wire = "chat" in [agents.{agent}]'),
            )


def _needs_chat(request: Request) -> bool:
    """Return whether a request says something that only chat completions take, or that was written for them."""
    if request.stop or request.seed is not None:
        return True
    if request.max_tokens is not None and request.max_tokens < MIN_OUTPUT:
        return True
    return bool(request.settings and request.settings.get(EXTRA))
