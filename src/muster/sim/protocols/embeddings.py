"""Embeddings: vectors that depend on the text alone, as numbers or packed in base64."""

import hashlib
import math
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.domain.canonical import Json
from muster.domain.script import count_tokens
from muster.sim.protocols.ask import SimRefusal
from muster.sim.protocols.openai import invalid
from muster.text import typed

SIZES: Mapping[str, int] = {"text-embedding-3-large": 3_072, "text-embedding-3-small": 1_536}
USUAL_SIZE = 1_536  # of models that are not known
MAX_INPUTS = 2_048
MAX_TOKENS = 8_192  # of one input
FORMATS = ("float", "base64")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingAsk:
    """A request for embeddings that makes sense."""

    model: str
    inputs: tuple[str, ...]
    size: int
    packed: bool  # in base64

    @property
    def tokens(self) -> int:
        """The tokens that go in."""
        return sum(map(count_tokens, self.inputs))


def read_embedding(body: Mapping[str, Json]) -> EmbeddingAsk:
    """Understand a request to `/v1/embeddings`, or refuse it."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("model", "expected a string")
    form = body.get("encoding_format", "float")
    if form not in FORMATS:
        raise invalid("encoding_format", f"expected one of {', '.join(FORMATS)}")
    return EmbeddingAsk(model=model, inputs=_inputs(body), size=_size(body, model), packed=form == "base64")


def _inputs(body: Mapping[str, Json]) -> tuple[str, ...]:
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 0 < len(texts) <= MAX_INPUTS:
        raise invalid("input", f"expected a string, or a list of 1 to {MAX_INPUTS}")
    found = tuple(text for text in texts if isinstance(text, str) and text)
    if len(found) != len(texts):
        raise invalid("input", "expected strings that are not empty")
    if max(map(count_tokens, found)) > MAX_TOKENS:
        raise SimRefusal(400, f"an input has more than {MAX_TOKENS} tokens", code="context_length_exceeded")
    return found


def _size(body: Mapping[str, Json], model: str) -> int:
    most = SIZES.get(model, USUAL_SIZE)
    size = body.get("dimensions", most)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= most:
        raise invalid("dimensions", f"expected a whole number of 1 to {most}")
    return size


def spell_embeddings(ask: EmbeddingAsk) -> bytes:
    """Spell the answer."""
    data = [
        {"object": "embedding", "index": index, "embedding": _spelled(vector(text, ask.size), packed=ask.packed)}
        for index, text in enumerate(ask.inputs)
    ]
    usage = {"prompt_tokens": ask.tokens, "total_tokens": ask.tokens}
    return typed.encode({"object": "list", "data": data, "model": ask.model, "usage": usage})


def vector(text: str, size: int) -> list[float]:
    """Return the vector of a text, of length 1; the same text has the same vector everywhere."""
    numbers = [number - 0.5 for number, _ in zip(_numbers(text), range(size), strict=False)]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def _numbers(text: str) -> Iterator[float]:
    """Yield numbers between 0 and 1, without an end."""
    block = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    while True:
        for (number,) in struct.iter_unpack("<I", block):
            yield (number + 0.5) / 2**32
        block = hashlib.sha256(block).digest()


def _spelled(numbers: list[float], *, packed: bool) -> Json:
    if not packed:
        return list(numbers)
    return b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
