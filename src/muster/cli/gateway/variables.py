"""The variables that point clients of model APIs at a gateway. Pure."""

from collections.abc import Mapping

from muster.api.gateway_listener import GatewayAddress

LOCAL = "127.0.0.1,localhost"


_OTHER_KEYS = ("ANTHROPIC_AUTH_TOKEN",)  # which clients would send instead


def environment_of(variables: Mapping[str, str], address: GatewayAddress, run: str) -> dict[str, str]:
    """Return the environment of a program whose clients are to find the gateway."""
    kept = {name: value for name, value in variables.items() if name not in _OTHER_KEYS}
    return {**kept, **client_variables(address, run)}


def client_variables(address: GatewayAddress, run: str) -> Mapping[str, str]:
    """Return what clients of model APIs look for before they are made."""
    base = f"{address.url}/run/{run}"
    return {
        "ANTHROPIC_BASE_URL": f"{base}/anthropic",
        "ANTHROPIC_API_KEY": address.key,
        "OPENAI_BASE_URL": f"{base}/openai/v1",
        "OPENAI_API_BASE": f"{base}/openai/v1",
        "OPENAI_API_KEY": address.key,
        "NO_PROXY": LOCAL,
        "no_proxy": LOCAL,
    }
