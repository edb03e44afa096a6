"""Takes secrets out of a text that comes in pieces."""

from collections.abc import Sequence

HIDDEN = "[redacted]"


class Curtain:
    """Lets a text through piece by piece; what could be the beginning of a secret waits for the next piece."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = sorted((secret for secret in secrets if len(secret) >= 8), key=len, reverse=True)
        self._held = ""

    def feed(self, text: str) -> str:
        """Take some text, and give what can be shown."""
        text = self._held + text
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        held = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> str:
        """Give what was held back; nothing comes after it."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, secret: str) -> int:
    """Say how much of the end of a text is the beginning of a secret."""
    longest = min(len(text), len(secret) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(secret[:size])), 0)
