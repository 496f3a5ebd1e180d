"""Unpack what was delivered, by its first bytes and whatever its name; and say what else a file looks like."""

import functools
import gzip
import io
import re
from collections.abc import Iterator

import numpy
import pyarrow

from highwater.formats import records
from highwater.formats.records import UnreadableFile

GZIP = b"\x1f\x8b"
# by Arrow's name of the codec
STREAMS = {
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
}
# zstd and LZ4 may begin with frames that are to be skipped
SKIPPABLE = bytes(range(0x50, 0x60))
# snappy alone has no form for files: Google's frames, snappy-java's stream, Hadoop's blocks
SNAPPY_FRAMES = b"\xff\x06\x00\x00sNaPpY"
SNAPPY_STREAM = b"\x82SNAPPY\x00"
LONGEST_BLOCK = 64 * 1024 * 1024
# Hadoop's codec has 256 KiB; below this the first byte is a zero, with which no text begins
LONGEST_OF_HADOOP = 16 * 1024 * 1024
LAYERS = 3
HEAD_BYTES = 512
AVRO, PARQUET = b"Obj\x01", b"PAR1\x15"
UNPACK = "unpack it, and deliver what is inside"
FOREIGN = {
    b"\xfd7zXZ\x00": ("xz", UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", UNPACK),
    b"Rar!\x1a\x07": ("a RAR archive", UNPACK),
    b"\x1f\x9d": ("compress (.Z)", UNPACK),
    b"\x1f\xa0": ("compress (.Z)", UNPACK),
    b"\x89LZO\x00\r\n\x1a\n": ("lzop", UNPACK),
    b"LZIP\x01": ("lzip", UNPACK),
    b"%PDF-": ("a PDF document", "deliver the rows as the producer writes them"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an Excel workbook (.xls)", "save its sheet as CSV, in UTF-8"),
    b"SQLite format 3\x00": ("an SQLite database", "export its rows"),
    b"Salted__": ("a file that openssl encrypted", "decrypt it, and deliver what is inside"),
    b"-----BEGIN PGP MESSAGE-----": ("a file that PGP encrypted", "decrypt it, and deliver what is inside"),
    b"age-encryption.org/": ("a file that age encrypted", "decrypt it, and deliver what is inside"),
    b"\xff\xfe\x00\x00": ("text in UTF-32", "deliver it in UTF-8"),
    b"\x00\x00\xfe\xff": ("text in UTF-32", "deliver it in UTF-8"),
}  # fmt: skip
OF_OTHER_FEEDS = {
    AVRO: ("an Avro file", "put it into the folder of a feed of Avro, or declare its format"),
    PARQUET: ("a Parquet file", "put it into the folder of a feed of Parquet, or declare its format"),
}
UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class _Pieces(io.RawIOBase):
    """A stream of what comes in pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self):
        """Return True: this is a stream to read from."""
        return True

    def readinto(self, buffer):
        """Fill `buffer` from the pieces; return the number of bytes read."""
        done = 0
        while done < len(buffer):
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._rest = memoryview(piece)
            count = min(len(buffer) - done, len(self._rest))
            buffer[done : done + count], self._rest = self._rest[:count], self._rest[count:]
            done += count
        return done


def decompressed(stream: io.RawIOBase) -> io.BufferedReader:
    """Return the stream's bytes, unpacked where its first bytes say that they are packed, also where they are twice.

    It unpacks gzip, zstd, bzip2, LZ4 frames, and snappy as Google's frames, snappy-java's stream or Hadoop's blocks.
    What is not whole, or damaged, fails where it is read, by OSError, EOFError or zlib.error.
    """
    buffered = _buffered(stream)
    for _ in range(LAYERS):
        unpacked = _unpacked(buffered)
        if unpacked is None:
            break
        buffered = _buffered(unpacked)
    return buffered


def _buffered(stream: io.RawIOBase) -> io.BufferedReader:
    return io.BufferedReader(stream, max(records.BLOCK_BYTES, HEAD_BYTES))


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins so is unpacked when it is read."""
    return _unpacked(_buffered(io.BytesIO(head))) is not None


def refuse_foreign(head: bytes, expected: bytes | None = None) -> None:
    """Say what a file is that is no text, or no text in UTF-8, by its first bytes.

    Arguments:
        head: the first HEAD_BYTES, unpacked. expected: what the feed's own files begin with; None: they are text.
    Raises: UnreadableFile naming what it looks like, and what to do.
    """
    if looks := looks_foreign(head, expected):
        raise UnreadableFile(f"it looks like {looks[0]}: {looks[1]}")


def looks_foreign(head: bytes, expected: bytes | None = None) -> tuple[str, str] | None:
    """Return what a file looks like that is no text in UTF-8, and what to do; None: it may be. See `refuse_foreign`."""
    if expected and head.startswith(expected):
        return None
    if head.startswith(b"PK\x03\x04"):
        return _zip(head)
    if head[257:262] == b"ustar":
        return "a tar archive", UNPACK
    for magic, looks in {**FOREIGN, **OF_OTHER_FEEDS}.items():
        if head.startswith(magic):
            return looks
    for mark, encoding in UTF16.items():
        # other bytes may begin so; text in UTF-16 has a zero in nearly each pair
        if head.startswith(mark) and len(head) > 3 and head[2:66].decode(encoding, errors="replace")[:-1].isascii():
            return "text in UTF-16", "deliver it in UTF-8"
    if len(head) >= 8 and (head[0::2][:4] == bytes(4) or head[1::2][:4] == bytes(4)) and any(head[:8]):
        return "text in UTF-16", "deliver it in UTF-8"
    if _is_block(head):
        return "blocks of Hadoop in LZ4 or LZO", "let its writer use gzip, zstd, bzip2 or snappy"
    return None


def _zip(head: bytes) -> tuple[str, str]:
    if head[6:7] and head[6] & 1:
        return "an encrypted ZIP archive", "decrypt and unpack it, and deliver what is inside"
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if name == b"[Content_Types].xml" or name.startswith((b"xl/", b"_rels/")):
        return "an Excel workbook (.xlsx)", "save its sheet as CSV, in UTF-8"
    return "a ZIP archive", UNPACK


def _unpacked(buffered: io.BufferedReader) -> io.RawIOBase | None:
    """Return the stream of what is packed; None where nothing says that it is."""
    head = buffered.peek(16)[:16]
    if head.startswith(GZIP):
        return gzip.GzipFile(fileobj=buffered, mode="rb")
    for codec, magic in STREAMS.items():
        if magic.match(head):
            return _Pieces(_of_arrow(buffered, codec))
    if head[1:4] == b"\x2a\x4d\x18" and head[0] in SKIPPABLE:
        return _Pieces(_behind_skipped(buffered))
    if head.startswith(SNAPPY_FRAMES):
        return _Pieces(_snappy_frames(buffered))
    if head.startswith(SNAPPY_STREAM):
        return _Pieces(_snappy_stream(buffered))
    return _Pieces(_snappy_blocks(buffered)) if _is_block_of_snappy(head) else None


def _of_arrow(stream, codec: str) -> Iterator[bytes]:
    with pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, mode="r"), codec) as unpacking:
        while piece := unpacking.read(records.BLOCK_BYTES):
            yield piece


def _behind_skipped(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield what stands behind the frames that say nothing, which pzstd and others write first."""
    while (head := stream.peek(4)[:4])[1:4] == b"\x2a\x4d\x18" and head[0] in SKIPPABLE:
        _exactly(stream, 4)
        _exactly(stream, int.from_bytes(_exactly(stream, 4), "little"))
    unpacked = _unpacked(stream)
    if unpacked is None:
        raise OSError("behind its first frame stands neither zstd nor LZ4")
    while piece := unpacked.read(records.BLOCK_BYTES):
        yield piece


def _exactly(stream, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise OSError("its compressed data ends within a block; it was cut")
    return data


def _length(stream) -> int | None:
    """Return a length, in four bytes, the highest first; None at the end."""
    data = stream.read(4)
    if not data:
        return None
    if len(data) < 4 or (length := int.from_bytes(data, "big")) > LONGEST_BLOCK:
        raise OSError("its compressed data is damaged, or was cut")
    return length


def _varint(data: bytes) -> int:
    """Return the number that a block of snappy begins with: how many bytes are packed in it."""
    number = 0
    for place, byte in enumerate(data[:5]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number
    return LONGEST_BLOCK + 1


def snappy(block: bytes) -> bytes:
    """Return what a bare block of snappy holds; OSError where it is damaged."""
    if (size := _varint(block)) > LONGEST_BLOCK:
        raise OSError("its compressed data is damaged: a block of snappy is too long")
    try:
        return pyarrow.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True) if size else b""
    except pyarrow.ArrowException as error:
        raise OSError(f"its compressed data is damaged: {error}") from None


def _snappy_stream(stream) -> Iterator[bytes]:
    """Yield what snappy-java's SnappyOutputStream has packed."""
    _exactly(stream, len(SNAPPY_STREAM) + 8)
    while (length := _length(stream)) is not None:
        yield snappy(_exactly(stream, length))


def _snappy_blocks(stream) -> Iterator[bytes]:
    """Yield what Hadoop's codec has packed: blocks with their length unpacked, in one part or several."""
    while (whole := _length(stream)) is not None:
        while whole > 0:
            length = _length(stream)
            piece = snappy(_exactly(stream, length or 0)) if length else b""
            if not piece or len(piece) > whole:
                raise OSError("its compressed data is damaged, or was cut")
            whole -= len(piece)
            yield piece


def _is_block(head: bytes) -> bool:
    """Return whether a file may begin with a block of Hadoop."""
    whole, length = (int.from_bytes(head[at : at + 4], "big") for at in (0, 4))
    return len(head) >= 8 and 0 < whole < LONGEST_OF_HADOOP and 0 < length <= whole + whole // 6 + 64


def _is_block_of_snappy(head: bytes) -> bool:
    whole = int.from_bytes(head[:4], "big")
    return _is_block(head) and 0 < _varint(head[8:]) <= whole


def _snappy_frames(stream) -> Iterator[bytes]:
    """Yield what stands in Google's frames, each by its checksum."""
    while header := stream.read(4):
        if len(header) < 4:
            raise OSError("its compressed data ends within a block; it was cut")
        kind, data = header[0], _exactly(stream, int.from_bytes(header[1:], "little"))
        if kind in (0, 1):
            piece = snappy(data[4:]) if kind == 0 else data[4:]
            if _masked(crc32c(piece)) != int.from_bytes(data[:4], "little"):
                raise OSError("its compressed data is damaged: a checksum is another")
            yield piece
        elif kind < 0x80:
            raise OSError(f"its compressed data has a block of the kind {kind}, which snappy does not know")


def _masked(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


@functools.cache
def _of_byte() -> numpy.ndarray:
    """Return what Castagnoli's polynomial makes of each byte."""
    table = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        table = numpy.where(table & 1, table >> 1 ^ numpy.uint32(0x82F63B78), table >> 1).astype(numpy.uint32)
    return table


@functools.cache
def _of_zeros(level: int) -> numpy.ndarray:
    """Return what two to the power of `level` zeros make of a checksum, by each of its four bytes."""
    alone = numpy.arange(256, dtype=numpy.uint32) << numpy.arange(0, 32, 8, dtype=numpy.uint32)[:, None]
    if not level:
        return _of_byte()[alone & 0xFF] ^ alone >> 8
    return _behind_zeros(_behind_zeros(alone, level - 1), level - 1)


def _behind_zeros(checksums: numpy.ndarray, level: int) -> numpy.ndarray:
    first, second, third, fourth = _of_zeros(level)
    return (
        first[checksums & 0xFF]
        ^ second[checksums >> 8 & 0xFF]
        ^ third[checksums >> 16 & 0xFF]
        ^ fourth[checksums >> 24]
    )


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes, which neither Python nor Arrow has: pairs of bytes, then pairs of pairs."""
    # a checksum of zero stays so behind zeros, so they may stand in front: what it starts with is laid over the data
    size = 1 << max(len(data) - 1, 3).bit_length()
    padded = numpy.zeros(size, numpy.uint8)
    padded[size - len(data) :] = numpy.frombuffer(data, numpy.uint8)
    padded[size - len(data) :][:4] ^= 0xFF
    checksums, level = _of_byte()[padded], 0
    while len(checksums) > 1:
        checksums, level = _behind_zeros(checksums[0::2], level) ^ checksums[1::2], level + 1
    # of data shorter than what it starts with, the rest of that is behind it
    return int(checksums[0]) ^ 0xFFFFFFFF >> 8 * min(len(data), 4) ^ 0xFFFFFFFF
