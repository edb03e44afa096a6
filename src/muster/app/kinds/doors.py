"""What doors need of a kind besides its order: names that are older than the rule by which they are made, and words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.doors import Door


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDoors:
    """How work of a kind is started through doors; what is left out is made from the words of the kind.

    `own` says of a door at which a kind has code of its own, or none, why that is so: nowhere else is an exception.
    """

    submit: str = ""  # "module:function", (muster, order), for orders over a network; by default app/orders.py
    start: str = ""  # "module:function", (muster, order, detach=…), for those of the command
    heading: str = ""  # of options that have none of their own; by default what people call one
    hint: str = "cancel it with: muster runs cancel {run}"  # what the command says of a run that it has started
    action: str = ""  # what the audit log calls it
    schema: str = ""  # the name of the body of a request, without Body
    path: str = ""  # of the request; by default /api/ and what people call several
    camel: bool = False  # names of fields in requests are in camelCase
    answer: str = ""  # "module:function", (muster, run), the view of what was started; by default that of any run
    has_list: bool = False  # a route of its own lists the runs
    tool: str = ""  # the name of the tool
    told: str = ""  # what models are told of it
    tool_order: str = ""  # "module:name", what models order, where one tool starts two kinds
    outline: str = ""  # "module:function", (muster, run), what models are told first of a run; by default its verdict
    ending: str = ""  # how commands tell the end of a run: a file of theirs and a name in it; by default by its report
    newer: tuple[str, ...] = ()  # fields that the tool did not have when digests of calls counted defaults
    own: Mapping[Door, str] = field(default_factory=dict)
