"""`python -m muster.sim`: the rehearsal server as a process of its own."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from muster.domain.errors import MusterError
from muster.sim.files import load_faults, load_script
from muster.sim.options import ECHO_SCRIPT, NO_FAULTS, Options
from muster.sim.protocols.ask import DEFAULT_TIER, GEOS, GLOBAL, PROJECT_TIERS
from muster.sim.server import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the arguments and serve."""
    given = _parser().parse_args(arguments)
    try:
        asyncio.run(run(_options(given), until_eof=given.until_eof))
    except (MusterError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code if isinstance(error, MusterError) else 4
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "Start a fake provider; prints its URLs as JSON."
    parser = argparse.ArgumentParser(prog="python -m muster.sim", description=about)
    parser.add_argument("--port", type=int, default=0, help="port; 0 for a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="delay before each answer")
    parser.add_argument("--script", help="file with answers")
    parser.add_argument("--faults", help="file with faults")
    parser.add_argument("--capacity", type=int, help="concurrent requests; more get 429")
    parser.add_argument("--require-key", help="the only key that is accepted")
    parser.add_argument("--batch-ms", type=float, default=0.0, help="time from the creation of a batch to its end")
    parser.add_argument("--batch-requests", type=int, help="maximum of one batch; default: as the provider")
    parser.add_argument("--batch-bytes", type=int, help="maximum of one batch; default: as the provider")
    parser.add_argument(
        "--live-counts",
        action=argparse.BooleanOptionalAction,
        help="whether a batch reports its progress; default: as the provider",
    )
    parser.add_argument("--thinking", choices=("on", "off"), help="whether models think; default: as the script says")
    parser.add_argument("--tier", choices=PROJECT_TIERS, default=DEFAULT_TIER, help="tier of requests that name none")
    parser.add_argument("--inference-geo", choices=GEOS, default=GLOBAL, help="place of requests that name none")
    parser.add_argument("--state", type=Path, help="file to resume from, written at the end")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends")
    return parser


def _options(given: argparse.Namespace) -> Options:
    return Options(
        port=given.port,
        latency_ms=given.latency_ms,
        script=load_script(given.script) if given.script else ECHO_SCRIPT,
        faults=load_faults(given.faults) if given.faults else NO_FAULTS,
        capacity=given.capacity,
        key=given.require_key,
        batch_ms=given.batch_ms,
        batch_requests=given.batch_requests,
        batch_bytes=given.batch_bytes,
        live_counts=given.live_counts,
        state=given.state,
        thinking=None if given.thinking is None else given.thinking == "on",
        tier=given.tier,
        geo=given.inference_geo,
    )


if __name__ == "__main__":
    sys.exit(main())
