"""The border to claude-agent-sdk: loaded by the first call; its names are used only here."""

import logging
from collections.abc import Mapping
from contextlib import aclosing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from muster.domain.errors import BadConfiguration

PACKAGE = "claude_agent_sdk"
NEEDED = "claude-agent-sdk 0.2.182 or a later 0.2"
NOBODY = "Nobody is here who could give permission."

_INSTALL = "pip install 'muster-ai[claude]'"


class Sdk:
    """The SDK, loaded."""

    def __init__(self, module: Any, builder: Any) -> None:
        self._module, self._builder = module, builder

    def command(self, options: Mapping[str, Any], cli_path: Path | None) -> tuple[str, ...]:
        """Build the command line, as the SDK itself would."""
        try:
            found = self._module.ClaudeAgentOptions(cli_path=str(cli_path or self._bundled()), **options)
            # Private, and the only use of anything private: there is no other way to start the process ourselves.
            return tuple(self._builder(prompt="", options=found)._build_command())
        except (AttributeError, TypeError) as error:
            raise self._unfit(str(error)) from error

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables by which Claude Code knows that the SDK drives it."""
        return {
            "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
            "CLAUDE_AGENT_SDK_VERSION": str(self._module.__version__),
            "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
            "PWD": str(folder),
        }

    async def converse(self, prompt: str, transport: Any) -> None:
        """Let the SDK talk over a transport until its messages end; whoever reads them reads them there."""

        async def refuse(*_: Any) -> Any:
            return self._module.PermissionResultDeny(message=NOBODY, interrupt=True)

        # What is said is data: a path or a command in it must not be looked up.
        options = self._module.ClaudeAgentOptions(can_use_tool=refuse, verbatim_prompts=True)
        async with aclosing(self._module.query(prompt=prompt, options=options, transport=transport)) as messages:
            async for _ in messages:
                pass

    def _bundled(self) -> Path:
        path = Path(self._module.__file__).parent / "_bundled" / "claude"
        if not path.is_file():
            raise BadConfiguration(
                f"the installed claude-agent-sdk does not include Claude Code: no such file: {path}",
                suggestions=("install its wheel for this platform", 'or set its path in muster.toml: cli_path = "…"'),
            )
        return path

    def _unfit(self, why: str) -> BadConfiguration:
        version = getattr(self._module, "__version__", "of an unknown version")
        return BadConfiguration(
            f"claude-agent-sdk {version} is not supported: {why}", suggestions=(f"use {NEEDED}: {_INSTALL}",)
        )


def require(package: str = PACKAGE) -> None:
    """Raise BadConfiguration when the SDK is not installed; it is not loaded for that."""
    if find_spec(package) is None:
        raise BadConfiguration("Claude Code needs claude-agent-sdk, which is not installed", suggestions=(_INSTALL,))


@cache
def load() -> Sdk:
    """Load the SDK, which takes about a second; raises BadConfiguration when it is missing or does not fit."""
    require()
    import claude_agent_sdk

    # It reports errors that we report too; a program without logging of its own must not print them.
    logging.getLogger(PACKAGE).addHandler(logging.NullHandler())
    try:
        from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
    except ImportError as error:
        raise Sdk(claude_agent_sdk, None)._unfit(str(error)) from error
    return Sdk(claude_agent_sdk, SubprocessCLITransport)
