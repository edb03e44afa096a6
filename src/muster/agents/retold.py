"""Bad output, told again by somebody who knows more about it. Pure."""

from muster.domain.errors import BadOutput, Paid


def retold(error: BadOutput, before: str = "", *, log: str = "", cost: int | None = None) -> BadOutput:
    """Say the same with more: words before it, the log, and what the call cost unless that is said already."""
    return BadOutput(
        before + error.message,
        log=log or error.log,
        cost=error.cost if error.paid is Paid.YES else cost,
        imputed=error.imputed,
        suggestions=error.suggestions,
    )
