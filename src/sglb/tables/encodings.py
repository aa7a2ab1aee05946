"""Detect the encoding of a text file, and find the first byte that is not valid in it."""

import codecs
from dataclasses import dataclass

from sglb.tables.errors import TableError
from sglb.tables.sources import TableSource

# Windows' Western European encoding; it agrees with Latin-1 on all printable characters.
FALLBACK = "cp1252"

BYTE_ORDER_MARKS = (  # UTF-32 first, because its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

CHUNK = 1 << 20


@dataclass(frozen=True)
class BadByte:
    """The first byte of a file that is not valid in an encoding."""

    value: int
    offset: int
    line: int
    encoding: str

    def __str__(self) -> str:
        return (
            f"not {self.encoding}: byte 0x{self.value:02x} at offset {self.offset}"
            f" (line {self.line})"
        )


def canonical_encoding(name: str) -> str:
    """Return an encoding's usual name; reject unknown ones."""
    try:
        codec = codecs.lookup(name).name
        "a".encode(codec)  # codecs such as hex and zip are not for text
    except LookupError:
        raise TableError(
            f"unknown encoding {name!r}; known are utf-8, cp1252, latin-1, utf-16 and many more"
        ) from None
    return "utf-8" if codec == "utf-8-sig" else codec


def detect_encoding(head: bytes) -> str | None:
    """Return the encoding of a file's first bytes, None if they do not tell."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    # Western text in UTF-16 has a zero in every second byte, other text has none at all.
    zeros = head[0::2].count(0), head[1::2].count(0)
    if 10 * max(zeros) > 4 * (len(head) // 2) > 0 and 10 * min(zeros) <= max(zeros):
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    return None


def decode_head(head: bytes, encoding: str) -> str:
    """Return the first characters of a file, without an incomplete character at the end."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    return text.removeprefix("\ufeff")


def first_bad_byte(source: TableSource, encoding: str) -> BadByte | None:
    """Return the first byte of a file that is not valid in an encoding, None if all are."""
    decoder = codecs.getincrementaldecoder(encoding)()
    start, lines, pending = 0, 1, b""
    with source.open() as stream:
        while True:
            chunk = stream.read(CHUNK)
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                data = pending + chunk
                line = lines + data[: error.start].count(b"\n")
                offset = start - len(pending) + error.start
                return BadByte(data[error.start], offset, line, encoding)
            if not chunk:
                return None
            data = pending + chunk
            pending = decoder.getstate()[0]
            lines += data[: len(data) - len(pending)].count(b"\n")
            start += len(chunk)
