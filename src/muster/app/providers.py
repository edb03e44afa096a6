"""The providers that are known by name, and what the settings say of each model of theirs."""

from dataclasses import dataclass
from datetime import UTC, datetime

from muster.domain.agent import Profile
from muster.domain.batch import Tariff
from muster.domain.price import Price
from muster.settings.sections import ModelSection, PriceSection


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A known provider: its API, where its address and key come from."""

    api: str
    base_url: str
    base_variable: str
    key_variable: str | None


ANTHROPIC = "anthropic"  # the APIs that are spoken
OPENAI = "openai"

PROVIDERS = {
    "anthropic": Provider(
        api=ANTHROPIC,
        base_url="https://api.anthropic.com",
        base_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "openai": Provider(
        api=OPENAI,
        base_url="https://api.openai.com/v1",
        base_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
    ),
    "openrouter": Provider(
        api=OPENAI,
        base_url="https://openrouter.ai/api/v1",
        base_variable="OPENROUTER_BASE_URL",
        key_variable="OPENROUTER_API_KEY",
    ),
    "ollama": Provider(
        api=OPENAI, base_url="http://127.0.0.1:11434/v1", base_variable="OLLAMA_BASE_URL", key_variable=None
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model: who it is, where it is asked, and which variable holds the key."""

    profile: Profile
    provider: str
    model: str
    base_url: str
    variable: str | None  # None when the server wants no key
    section: ModelSection | None  # when it is declared in muster.toml

    @property
    def api(self) -> str:
        """Say which API is spoken there."""
        return PROVIDERS[self.provider].api

    def price(self) -> Price | None:
        """Say what a live call costs, if anybody knows."""
        return self._price(self.section.price if self.section else None, batch=False)

    def near(self) -> tuple[str, ...]:
        """Return the names that may have been meant, if the price list does not know this one."""
        from muster.agents.prices import near_models

        if self.section is not None and self.section.base_url is not None:
            return ()  # whose models are anybody's
        prefix = "" if self.section is not None else f"{self.provider}/"
        return tuple(f"{prefix}{model}" for model in near_models(self.provider, self.model))

    def tariff(self) -> Tariff:
        """Say what a call costs in a batch and live, if anybody knows."""
        section = self.section
        # Without a price for batches that of live calls holds: rather too high than unknown.
        own = (section.batch_price or section.price) if section else None
        return Tariff(model=self.model, batch=self._price(own, batch=True), live=self.price())

    def _price(self, own: PriceSection | None, *, batch: bool) -> Price | None:
        from muster.agents.prices import price_from_toml, price_of

        if own is not None:
            return price_from_toml(**own.dollars())
        if self.section is not None and self.section.base_url is not None and self.provider == "openai":
            return None  # a server of the user's own: the price list of another provider says nothing about it
        if self.provider == "ollama":
            return price_from_toml(0, 0)  # it runs on the user's own machine
        return price_of(self.provider, self.model, datetime.now(UTC), batch=batch)
