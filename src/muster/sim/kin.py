"""Servers that speak another's protocol with refusals of their own, each under an address of its own.

They refuse what the real ones refuse, so that a client which does not know their dialect is found out.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from muster.domain.canonical import Json
from muster.sim.http import Handler, HttpRequest
from muster.sim.playback import Playback
from muster.sim.protocols.anthropic import Anthropic
from muster.sim.protocols.ask import Ask, SimRefusal, WireProtocol
from muster.sim.protocols.model_list import openai_list
from muster.sim.protocols.openai import OpenAI
from muster.sim.rehearsal import Rehearsal
from muster.sim.request import read_body
from muster.text import typed

VERTEX_VERSION = "2026-10-21"
_VERTEX = "/vertex-claude/v1/projects/{project}/locations/global/publishers/anthropic/models"


class Kin(OpenAI):
    """Speaks chat completions as one provider does."""

    def __init__(
        self,
        *unknown: str,
        wants_key: bool = True,
        tells_usage: bool = False,
        tiers: Mapping[str, str] | None = None,
        publisher: str = "",
    ) -> None:
        self._unknown = unknown  # fields of a body
        self.wants_key = wants_key
        self._tells_usage = tells_usage  # at the end of every stream, asked or not
        self._tiers = tiers  # by its own words; None: those of OpenAI
        self._publisher = publisher  # stands before the name of every model

    def read(self, body: dict[str, Json]) -> Ask:
        """Understand a request, or refuse what this provider does not take."""
        for name in self._unknown:
            if name in body:
                raise SimRefusal(422, f"body.{name}: Extra inputs are not permitted", param=name)
        if not str(body.get("model")).startswith(self._publisher):
            raise SimRefusal(400, f"model: must be {self._publisher}MODEL", param="model")
        ask = super().read({**body, **self._tier(body)})
        return replace(ask, stream_usage=True) if self._tells_usage else ask

    def _tier(self, body: Mapping[str, Json]) -> dict[str, Json]:
        tier = body.get("service_tier")
        if self._tiers is None or tier is None:
            return {}
        if tier not in self._tiers:
            raise SimRefusal(400, f"service_tier must be one of {', '.join(self._tiers)}", param="service_tier")
        return {"service_tier": self._tiers[str(tier)]}


_ON_THIS_MACHINE = Kin("max_completion_tokens", "service_tier", wants_key=False)
_WITHOUT_TIERS = Kin("service_tier")
KIN: Mapping[str, Kin] = {
    "azure": Kin("max_tokens"),  # as deployments of models that reason
    "bedrock": _WITHOUT_TIERS,
    "vertex": Kin("service_tier", publisher="google/"),
    "openrouter": Kin(),
    "gemini": Kin(tiers={"default": "default", "flex": "flex", "priority": "priority"}),
    "groq": Kin(tiers={"auto": "auto", "on_demand": "default", "flex": "flex", "performance": "priority"}),
    "mistral": Kin("stream_options", "max_completion_tokens", "seed", "service_tier", tells_usage=True),
    "deepseek": Kin("max_completion_tokens", "service_tier"),
    "xai": _WITHOUT_TIERS,
    "together": Kin("max_completion_tokens", "service_tier"),
    "fireworks": Kin("max_completion_tokens", "service_tier"),
    "cerebras": Kin(),
    **dict.fromkeys(("ollama", "lmstudio", "vllm", "llamacpp"), _ON_THIS_MACHINE),
}
BEDROCK_CLAUDE: WireProtocol = Anthropic()


def address_of(provider: str) -> str:
    """Return the path below which a provider is found."""
    if provider == "bedrock-claude":
        return "/bedrock-claude/anthropic"
    return _VERTEX.format(project="sim") if provider == "vertex-claude" else f"/{provider}/v1"


def kin_routes(rehearsal: Rehearsal) -> Mapping[tuple[bytes, bytes], Handler]:
    """Return the table of endpoints of all of them."""
    routes: dict[tuple[bytes, bytes], Handler] = {}
    for name, kin in KIN.items():
        base = address_of(name).encode()
        routes[b"POST", base + b"/chat/completions"] = partial(_answer, rehearsal, kin)
        routes[b"GET", base + b"/models"] = partial(rehearsal.list_models, kin, openai_list())
    routes[b"POST", b"/bedrock-claude/anthropic/v1/messages"] = partial(_answer, rehearsal, BEDROCK_CLAUDE)
    return routes


VERTEX_PATH = f"{_VERTEX.format(project='sim')}/{{id}}"


def predict(rehearsal: Rehearsal, request: HttpRequest, name: str) -> Playback:
    """Answer a request that has its model and the kind of its answer in the address."""
    model, _, verb = name.partition(":")
    try:
        body = read_body(request.body)
        _check_raw(body, verb)
    except SimRefusal as refused:
        return rehearsal.refuse(BEDROCK_CLAUDE, refused, next(rehearsal.numbers))
    whole = {"model": model, **{field: value for field, value in body.items() if field != "anthropic_version"}}
    return _answer(rehearsal, BEDROCK_CLAUDE, request._replace(body=typed.encode(whole)))


def _check_raw(body: Mapping[str, Json], verb: str) -> None:
    if "model" in body:
        raise SimRefusal(400, "model: Extra inputs are not permitted")
    if body.get("anthropic_version") != VERTEX_VERSION:
        raise SimRefusal(400, f"anthropic_version: Input should be {VERTEX_VERSION}")
    if verb != ("streamRawPredict" if body.get("stream") is True else "rawPredict"):
        raise SimRefusal(404, f"no such method: {verb}")


def _answer(rehearsal: Rehearsal, dialect: WireProtocol, request: HttpRequest) -> Playback:
    """Answer a request whose key, if one is wanted, is a bearer's."""
    scheme = request.headers.get(b"authorization", b"").partition(b" ")[0].lower()
    if dialect.wants_key and scheme != b"bearer":
        rehearsal.book.requests += 1
        return rehearsal.refuse(dialect, SimRefusal(401, "use Authorization: Bearer"), next(rehearsal.numbers))
    return rehearsal.perform(dialect, request)
