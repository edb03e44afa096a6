"""Every order, by the kinds of work: what is tested of one is tested of all, also of one that is added later."""

from collections.abc import Mapping
from typing import Any

from muster.app.kinds import KINDS, made_at
from muster.domain.doors import Door
from muster.suites.order import RejudgeOrder

ORDERS: tuple[type, ...] = (*(known.order for known in KINDS if known.kind.order), RejudgeOrder)
FORMS: Mapping[str, Any] = {  # by the name of the form in the address of the page
    known.kind.word.partition(" ")[0]: known.order for known in made_at(Door.REQUEST)
}
