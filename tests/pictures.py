"""Images and documents for tests: small files whose headers say what they are to say."""

import struct
import zlib


def png(width: int = 64, height: int = 48, text: bytes = b"") -> bytes:
    """Make a PNG that says how large it is; other texts make other files."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"tEXt", b"t\0" + text), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def pdf(pages: int = 1, *, packed: bool = False, kids: str = "", extra: bytes = b"") -> bytes:
    """Make a PDF with some pages; `packed` in an object stream, as newer files have them."""
    numbers = range(3, 3 + pages)
    shown = kids or "[" + " ".join(f"{number} 0 R" for number in numbers) + "]"
    tree = f"<</Type /Pages /Kids {shown} /Count {pages}>>".encode()
    leaves = [b"<</Type /Page /Parent 2 0 R>>" for _ in numbers]
    if packed:
        stream = zlib.compress(b" ".join([tree, *leaves]))
        header = f"2 0 obj <</Type /ObjStm /Filter /FlateDecode /Length {len(stream)}>> stream\n".encode()
        body = header + stream + b"\nendstream endobj\n"
    else:
        body = b"".join(
            f"{number} 0 obj ".encode() + one + b" endobj\n" for number, one in enumerate([tree, *leaves], 2)
        )
    return b"%PDF-1.7\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n" + body + extra + b"\n%%EOF\n"
