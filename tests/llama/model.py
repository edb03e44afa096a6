"""Writes a language model of a few thousand random numbers as a GGUF file: it says nothing, in the form of a real one.

A token stands for one byte. What the model writes are printable characters, since all others are made improbable, and
it never ends by itself: only a limit, a grammar or a closed connection ends it.
"""

import random
import struct
from array import array
from collections.abc import Sequence
from math import prod
from pathlib import Path

WIDTH, HEADS, HIDDEN, LAYERS = 32, 2, 64, 1
CONTEXT = 32_768  # tokens
BYTES_FROM = 3  # the first tokens are none of bytes
NAMES = ("<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581")  # the last one is the space
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # types of tokens
TEMPLATE = "{% for one in messages %}{{ one['role'] }}: {{ one['content'] }}\n{% endfor %}assistant: "
PRINTABLE = range(33, 127)
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10  # types of values in the file
ALIGNMENT = 32

Tensors = dict[str, tuple[tuple[int, ...], list[float]]]


def write_model(path: Path) -> None:
    """Write the model; it is the same each time."""
    tensors = _tensors(random.Random(1))
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(_values())), *_values()]
    offset = 0
    for name, (shape, numbers) in tensors.items():
        head += [_text(name), struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)]
        offset += _padded(4 * len(numbers))
    start = b"".join(head)
    with path.open("wb") as file:
        file.write(start.ljust(_padded(len(start)), b"\0"))
        for _, numbers in tensors.values():
            file.write(array("f", numbers).tobytes().ljust(_padded(4 * len(numbers)), b"\0"))


def _tensors(draw: random.Random) -> Tensors:
    def drawn(*shape: int) -> tuple[tuple[int, ...], list[float]]:
        return shape, [draw.gauss(0, 0.1) for _ in range(prod(shape))]

    def ones() -> tuple[tuple[int, ...], list[float]]:
        return (WIDTH,), [1.0] * WIDTH

    tensors = {"token_embd.weight": drawn(WIDTH, len(NAMES)), "output.weight": drawn(WIDTH, len(NAMES))}
    for token in range(len(NAMES)):  # the first number is the same for all, so that it can favor tokens at the end
        tensors["token_embd.weight"][1][token * WIDTH] = 1.0
        tensors["output.weight"][1][token * WIDTH] = 1.0 if token - BYTES_FROM in PRINTABLE else -10.0
    tensors["output_norm.weight"] = ones()
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = ones()
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"blk.{layer}.{name}.weight"] = drawn(WIDTH, WIDTH)
        tensors[f"blk.{layer}.ffn_gate.weight"] = drawn(WIDTH, HIDDEN)
        tensors[f"blk.{layer}.ffn_up.weight"] = drawn(WIDTH, HIDDEN)
        tensors[f"blk.{layer}.ffn_down.weight"] = drawn(HIDDEN, WIDTH)
    return tensors


def _values() -> list[bytes]:
    numbers = {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": HIDDEN,
        "attention.head_count": HEADS,
        "attention.head_count_kv": HEADS,
        "rope.dimension_count": WIDTH // HEADS,
        "vocab_size": len(NAMES),
    }
    marks = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, NORMAL]
    return [
        _value("general.architecture", STRING, _text("llama")),
        _value("general.name", STRING, _text("tiny")),
        *(_value(f"llama.{name}", UINT32, struct.pack("<I", number)) for name, number in numbers.items()),
        _value("llama.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)),
        _value("tokenizer.ggml.model", STRING, _text("llama")),
        _value("tokenizer.ggml.tokens", ARRAY, _array(STRING, [_text(name) for name in NAMES])),
        _value("tokenizer.ggml.scores", ARRAY, _array(FLOAT32, [struct.pack("<f", 0.0)] * len(NAMES))),
        _value("tokenizer.ggml.token_type", ARRAY, _array(INT32, [struct.pack("<i", one) for one in types])),
        *(_value(f"tokenizer.ggml.{name}", UINT32, struct.pack("<I", number)) for name, number in marks.items()),
        _value("tokenizer.ggml.add_space_prefix", BOOL, b"\0"),
        _value("tokenizer.chat_template", STRING, _text(TEMPLATE)),
    ]


def _value(name: str, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value


def _array(kind: int, values: Sequence[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
