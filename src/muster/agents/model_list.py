"""Which models a provider offers: both APIs list them in nearly the same form."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.agents.faults import Account, ErrorAnswer, error_of, plain, unreadable
from muster.agents.http.client import BatchHttp
from muster.agents.http.request import with_query
from muster.domain.agent import Timeouts
from muster.domain.canonical import Json
from muster.domain.price import Price
from muster.text import typed

MAX_PAGES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModel:
    """A model that a provider offers, as far as it says."""

    id: str
    title: str = ""
    created: str = ""  # the day
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    price: Price | None = None  # of a live call, where it is known


class _Page(typed.Struct):
    data: list[Json]
    has_more: bool = False
    last_id: str | None = None


_page = typed.Decoder(_Page)


async def offered_models(
    http: BatchHttp, url: str, headers: Mapping[str, str], account: Account, query: Mapping[str, str]
) -> tuple[OfferedModel, ...]:
    """Return the models that a provider lists, all pages of them; raises what it answers instead."""
    found: list[OfferedModel] = []
    after: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        answer = await http.get(with_query(url, {**query, **after}), headers, Timeouts())
        if not 200 <= answer.status < 300:
            raise error_of(ErrorAnswer(status=answer.status, text=plain(answer.body)[:1_000]), account)
        try:
            page = _page.decode(answer.body)
        except typed.DecodeError:
            raise unreadable("sent an answer that is not a list of models", account, answer.body) from None
        found += [_model(one) for one in page.data if isinstance(one, dict) and isinstance(one.get("id"), str)]
        if not page.has_more or not page.last_id:
            break
        after = {"after_id": page.last_id}
    return tuple(found)


def _model(one: Mapping[str, Json]) -> OfferedModel:
    title = one.get("display_name")
    return OfferedModel(
        id=str(one["id"]),
        title=title if isinstance(title, str) else "",
        created=_day(one.get("created_at", one.get("created"))),
        context_tokens=_count(one.get("max_input_tokens")),
        max_output_tokens=_count(one.get("max_tokens")),
    )


def _day(moment: object) -> str:
    if isinstance(moment, str):
        return moment[:10]
    is_time = isinstance(moment, int) and 0 < moment < 10**11
    return datetime.fromtimestamp(moment, UTC).date().isoformat() if is_time and isinstance(moment, int) else ""


def _count(number: object) -> int | None:
    return number if isinstance(number, int) and number > 0 else None
