"""The providers that are known by name: where each is, whose API it speaks, and what it takes and refuses.

All that differs between servers which speak the same API stands here, once; nothing else compares their names.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from muster.domain.errors import BadConfiguration
from muster.domain.price import InferenceGeo, ServiceTier

ANTHROPIC = "anthropic"  # the APIs that are spoken
OPENAI = "openai"
OPENAI_HOST = "api.openai.com"  # and those below it, which are its regions


class MaxTokens(StrEnum):
    """How a server spells `max_tokens`."""

    NEW = "max_completion_tokens"  # api.openai.com: its reasoning models refuse the old name
    OLD = "max_tokens"  # compatible servers: many of them ignore the new name, which would leave the answer unbounded


class KeyStyle(StrEnum):
    """The header that carries the key."""

    BEARER = "authorization"
    X_API_KEY = "x-api-key"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the header with a key; none without one."""
        if not key:
            return {}
        return {self.value: f"Bearer {key}" if self is KeyStyle.BEARER else key}


class BatchForm(StrEnum):
    """The form of a batch API."""

    NONE = ""
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


_TIERS_OF_OPENAI = {tier: tier.value for tier in ServiceTier}
_AS_OPENAI: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider, and the dialect of its API that its server speaks."""

    name: str
    base_url: str  # names in braces stand for places that the environment names
    api: str = OPENAI
    key_variable: str | None = None  # None: no key is wanted
    key_style: KeyStyle = KeyStyle.BEARER
    token_command: tuple[str, ...] = ()  # prints a key, where there is none that lasts
    prices: str = ""  # what the price list calls it, where that is not its name
    publisher: str = ""  # stands before the names of its models, and not in the price list
    free: bool = False  # it runs on the user's own machine
    deployments: bool = False  # its models have names of the user's own, which no price list knows
    global_prices: bool = False  # the price list has its prices for the location `global` only
    limit: MaxTokens | None = None  # None: as the name of a model suggests
    spelled: Mapping[str, str] = field(default_factory=lambda: _AS_OPENAI)  # fields of a body that it calls otherwise
    stream_options: bool = True  # a stream tells its usage only when it is asked to
    raw_predict: bool = False  # the model stands in the address, and not in the body
    tiers: Mapping[str, str] = field(default_factory=dict)  # of service that can be asked for, with its own words
    auto_tier: str = ""  # the tier that may serve a request which names none, or `auto`, beside the standard one
    batches: BatchForm = BatchForm.NONE
    counts: bool = False  # a free endpoint counts the tokens of a request; of OpenAI, one that goes through Responses
    lists: bool = True  # its server lists the models that it has
    responses: bool = False  # its server is known to have OpenAI's Responses API
    geos: tuple[str, ...] = ()  # where inference can be asked to take place; its answers name where it did
    regions: Mapping[str, Decimal] = field(default_factory=dict)  # patterns of hosts, with the factor of their prices

    @property
    def base_variable(self) -> str:
        """The variable that names another address."""
        return f"{self.name.upper().replace('-', '_')}_BASE_URL"

    @property
    def price_list(self) -> str:
        """What the price list calls it."""
        return self.prices or self.name

    def region_factor(self, base_url: str) -> Decimal:
        """Return by what the prices of an address are multiplied: those of regions are above the global ones."""
        host = host_of(base_url)
        return next((factor for glob, factor in self.regions.items() if fnmatchcase(host, glob)), _GLOBAL)

    def address(self, variable: Callable[[str], str | None]) -> str:
        """Return the address with its places filled in; raises BadConfiguration for one that is not known."""
        values = {place: self._place(place, variable) for place in re.findall(r"{(\w+)}", self.base_url)}
        return self.base_url.format(**values)

    def _place(self, place: str, variable: Callable[[str], str | None]) -> str:
        if place == "VERTEX_HOST":
            return _vertex_host(self._place("LOCATION", variable))
        names = PLACES[place]
        value = next((found for name in names if (found := variable(name))), None)
        if value is None:
            raise BadConfiguration(
                f"the address of {self.name} needs {names[0]}, which is not set",
                suggestions=(f"export {names[0]}=…", "or set base_url in muster.toml"),
            )
        if not _PLACE.fullmatch(value):
            raise BadConfiguration(f"{names[0]} is not a name that can stand in an address: {value!r}")
        return value


_GLOBAL = Decimal(1)


def host_of(base_url: str) -> str:
    """Return the host of an address in lower case; empty where it has none."""
    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""


_PLACE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})")
PLACES: Mapping[str, tuple[str, ...]] = {  # of addresses, with the variables that name them
    "RESOURCE": ("AZURE_RESOURCE",),
    "REGION": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "PROJECT": ("GOOGLE_CLOUD_PROJECT",),
    "LOCATION": ("GOOGLE_CLOUD_LOCATION",),
}


def _vertex_host(location: str) -> str:
    if location == "global":
        return "aiplatform.googleapis.com"
    if location in ("us", "eu"):
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def _hosted(name: str, base_url: str, **traits: object) -> Provider:
    """Describe a provider that speaks OpenAI's API at an address of its own."""
    fields: dict[str, object] = {"key_variable": f"{name.upper()}_API_KEY", **traits}
    return Provider(name=name, base_url=base_url, **fields)  # type: ignore[arg-type]


def _local(name: str, port: int, *, batches: BatchForm = BatchForm.NONE) -> Provider:
    """Describe a server on this machine that wants no key and costs nothing."""
    address = f"http://127.0.0.1:{port}/v1"
    return Provider(name=name, base_url=address, free=True, limit=MaxTokens.OLD, batches=batches, responses=True)


_GCLOUD = ("gcloud", "auth", "print-access-token")
_VERTEX = "https://{VERTEX_HOST}/v1/projects/{PROJECT}/locations/{LOCATION}"

_KNOWN = (
    Provider(
        name="anthropic",
        api=ANTHROPIC,
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        key_style=KeyStyle.X_API_KEY,
        # How a request names them is a matter of its API.
        tiers={tier: tier.value for tier in (ServiceTier.AUTO, ServiceTier.DEFAULT, ServiceTier.FAST)},
        auto_tier=ServiceTier.PRIORITY,
        batches=BatchForm.ANTHROPIC,
        counts=True,
        geos=tuple(InferenceGeo),
    ),
    _hosted(
        "openai",
        "https://api.openai.com/v1",
        tiers=_TIERS_OF_OPENAI,
        batches=BatchForm.OPENAI,
        counts=True,
        responses=True,
        # Only models since March 2026 are dearer there; the price list does not say which.
        regions={f"*.{OPENAI_HOST}": Decimal("1.1")},
    ),
    Provider(
        name="azure",
        base_url="https://{RESOURCE}.openai.azure.com/openai/v1",
        key_variable="AZURE_OPENAI_API_KEY",
        token_command=("az", "account", "get-access-token", "--query", "accessToken", "--output", "tsv"),
        deployments=True,
        limit=MaxTokens.NEW,
        batches=BatchForm.OPENAI,
        responses=True,
    ),
    Provider(
        name="bedrock",
        base_url="https://bedrock-runtime.{REGION}.amazonaws.com/openai/v1",
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        prices="aws",
        limit=MaxTokens.NEW,
    ),
    Provider(
        name="bedrock-claude",
        api=ANTHROPIC,
        base_url="https://bedrock-mantle.{REGION}.api.aws/anthropic",
        lists=False,
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        prices="aws",
    ),
    Provider(
        name="vertex",
        base_url=f"{_VERTEX}/endpoints/openapi",
        key_variable="VERTEX_ACCESS_TOKEN",
        token_command=_GCLOUD,
        prices="google",
        publisher="google/",
        limit=MaxTokens.OLD,
    ),
    Provider(
        name="vertex-claude",
        api=ANTHROPIC,
        base_url=f"{_VERTEX}/publishers/anthropic/models",
        key_variable="VERTEX_ACCESS_TOKEN",
        token_command=_GCLOUD,
        prices="google",
        global_prices=True,
        raw_predict=True,
        lists=False,
    ),
    _hosted(
        "openrouter",
        "https://openrouter.ai/api/v1",
        tiers=_TIERS_OF_OPENAI,
        batches=BatchForm.OPENAI,
        responses=True,
    ),
    _hosted(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        prices="google",
        tiers=_TIERS_OF_OPENAI,
        limit=MaxTokens.OLD,
    ),
    _hosted(
        "groq",
        "https://api.groq.com/openai/v1",
        tiers={ServiceTier.AUTO: "auto", ServiceTier.DEFAULT: "on_demand", ServiceTier.FLEX: "flex"},
        batches=BatchForm.OPENAI,
        responses=True,
    ),
    _hosted(
        "mistral",
        "https://api.mistral.ai/v1",
        limit=MaxTokens.OLD,
        spelled={"seed": "random_seed"},
        stream_options=False,
    ),
    _hosted("deepseek", "https://api.deepseek.com/v1", limit=MaxTokens.OLD),
    _hosted("xai", "https://api.x.ai/v1", prices="x-ai", responses=True),
    _hosted(
        "together",
        "https://api.together.xyz/v1",
        limit=MaxTokens.OLD,
        regions={"??-api.together.*": Decimal("1.25")},
    ),
    _hosted("fireworks", "https://api.fireworks.ai/inference/v1", limit=MaxTokens.OLD, responses=True),
    _hosted("cerebras", "https://api.cerebras.ai/v1", tiers=_TIERS_OF_OPENAI),
    _local("ollama", 11434, batches=BatchForm.OPENAI),
    _local("lmstudio", 1234),
    _local("vllm", 8000),
    _local("llamacpp", 8080),
)
PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _KNOWN}
