"""The lists of models of both providers, in the form of each."""

from datetime import UTC, datetime

from muster.sim.protocols.models import ANTHROPIC_MODELS, OPENAI_MODELS, SimModel
from muster.text import typed


def anthropic_list() -> bytes:
    """Spell the answer to `GET /v1/models` of Anthropic."""
    data = [
        {
            "type": "model",
            "lifecycle": "active",
            "id": model.name,
            "display_name": model.title,
            "created_at": f"{model.created}T00:00:00Z",
            "max_input_tokens": model.context,
            "max_tokens": model.max_output,
        }
        for model in ANTHROPIC_MODELS
    ]
    return typed.encode({"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]})


def openai_list() -> bytes:
    """Spell the answer to `GET /v1/models` of OpenAI."""
    data = [
        {"id": model.name, "object": "model", "created": _seconds(model), "owned_by": "openai"}
        for model in OPENAI_MODELS
    ]
    return typed.encode({"object": "list", "data": data})


def _seconds(model: SimModel) -> int:
    return int(datetime.fromisoformat(model.created).replace(tzinfo=UTC).timestamp())
