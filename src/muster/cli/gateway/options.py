"""What commands of the gateway are told."""

from typing import Annotated

from muster.cli.line import Argument

CommandArgument = Annotated[
    list[str], Argument(metavar="COMMAND…", help="The program and its arguments; write them behind --.")
]
