"""Refusals: the ones that faults ask for, and what every refusal carries in its headers."""

from muster.sim.ask import Dialect, Refused
from muster.sim.faults import Fault

REASONS = {
    400: "this request was refused by the fault plan",
    401: "invalid key, by the fault plan",
    403: "this key may not do that, by the fault plan",
    404: "not found, by the fault plan",
    413: "the request is too large, by the fault plan",
    429: "too many requests, by the fault plan",
    500: "internal server error, by the fault plan",
    529: "overloaded, by the fault plan",
}


def refuse_honestly(fault: Fault) -> None:
    """Raise the error of a fault that is one."""
    status = fault.kind.status
    if status is not None:
        raise Refused(status, REASONS[status], retry_after=fault.retry_after)


def request_id(number: int) -> str:
    """Name a request by its number at this server."""
    return f"req_sim_{number:08d}"


def headers_of(dialect: Dialect, number: int, refused: Refused | None = None) -> list[tuple[str, str]]:
    """Give the headers of an answer: its name, and when to come again."""
    headers = [(dialect.request_id_header, request_id(number))]
    if refused is not None and refused.retry_after is not None:
        headers.append(("retry-after", f"{refused.retry_after:.3f}".rstrip("0").rstrip(".")))
    return headers
