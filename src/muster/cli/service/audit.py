"""`muster audit`: what users did through `muster serve`."""

from muster.app import Muster
from muster.app.parts.audit import AuditRecord
from muster.app.views.service import audit_view
from muster.cli.options import LimitOption
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer_list, clean, note
from muster.cli.terminal.times import local


def audit(common: CommonOptions, limit: LimitOption = 20) -> None:
    """List what users of the server started, reviewed and canceled, newest first."""

    async def work(muster: Muster) -> list[AuditRecord]:
        return list(await muster.audit.list(limit=limit + 1))

    found = with_muster(common, work)
    if not found:
        note(common, "no user actions recorded by muster serve yet")
    shown = found[:limit]
    lines = "\n".join(_line(one) for one in shown)
    answer_list(
        common,
        [audit_view(one) for one in shown],
        lambda console: console.print(lines, soft_wrap=True),
        cut=len(found) > limit,
        noun="actions",
    )


def _line(record: AuditRecord) -> str:
    came = "" if record.outcome == "done" else f"  {record.outcome}"
    who = f"{record.user or 'local'}  {record.client}"
    return clean(f"{local(record.at)}  {who}  {record.action}  {record.subject}{came}")
