"""`muster metrics`: what the store holds, in the text format of Prometheus."""

import sys

from muster.app import Muster
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, write_to


def metrics(common: CommonOptions) -> None:
    """Print metrics of the store in Prometheus text format."""

    async def work(muster: Muster) -> str:
        return await muster.metrics()

    text = with_muster(common, work)
    if common.json:
        answer(common, {"text": text}, lambda console: None)
    else:
        write_to(sys.stdout, text)
