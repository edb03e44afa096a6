"""The section of muster.toml about the gateway: who is behind it, and what all that goes through it may cost."""

from muster.settings.sections import Count, Dollars, Strict
from muster.text.typed import field

UPSTREAMS = {"anthropic": "anthropic", "openai": "openai"}


class GatewaySection(Strict, frozen=True, kw_only=True):
    """`[gateway]`: the upstreams of foreign programs, and the caps of what they spend."""

    upstreams: dict[str, str] = field(default_factory=lambda: dict(UPSTREAMS))  # a provider or an agent, by its name
    day_usd: Dollars | None = None  # of all exchanges of one UTC day
    runs: dict[str, Dollars] = field(default_factory=dict)  # for ever, by name
    other_usd: Dollars | None = None  # for ever, of all names that are not declared in `runs`
    max_output: dict[str, Count] = field(default_factory=dict)  # tokens, of models that no table knows
    context: dict[str, Count] = field(default_factory=dict)  # the same
