"""Orders as bodies of requests: `body: Annotated[OrderBody[BattleOrder], ordered(BattleOrder, …)]`."""

from inspect import Parameter, Signature
from typing import Any

from fastapi import Depends
from pydantic import ConfigDict

from muster.api.forms import field_label
from muster.app.serving.order_models import OrderBody, OrderModel, order_body, order_model
from muster.domain.doors import Door


def ordered(kind: Any, *, name: str, camel: bool = False) -> Any:
    """Return the dependency that reads the body of a request as an order; its schema shows the order's example."""
    made = order_model(kind, Door.REQUEST, name=name, camel=camel)
    names, example = made.names(), getattr(kind, "example", {})
    shown = _showing({names[field]: value for field, value in example.items()})
    model: type[OrderModel] = type(name, (made,), {"__doc__": made.__doc__, "model_config": shown})

    def read(body: OrderModel) -> OrderBody[Any]:
        return order_body(body)

    annotated = Parameter("body", Parameter.POSITIONAL_OR_KEYWORD, annotation=model)
    read.__signature__ = Signature([annotated])  # type: ignore[attr-defined]  # what FastAPI reads
    return Depends(read)


def _showing(example: dict[str, Any]) -> ConfigDict:
    shown: ConfigDict = {"field_title_generator": field_label}
    return shown | {"json_schema_extra": {"examples": [example]}} if example else shown
