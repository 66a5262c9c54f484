"""Small files that take much memory or time if their readers trust them."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from functools import partial

import numpy as np

_CHUNK = bytes(10**6)
COMPRESSIONS = {".gz": gzip.open, ".xz": partial(lzma.open, preset=0), ".bz2": bz2.open}


def npy(shape, dtype="<f4", data=b""):
    """Return an array file whose header declares any shape."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(files, method=zipfile.ZIP_DEFLATED):
    """Return an archive of (name, content)."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return content.getvalue()


def npz_bomb(num_bytes):
    """Return a .npz file with an array of zeros, compressed to 1/1000 of its size."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy((num_bytes // 4,)))
        for _ in range(num_bytes // len(_CHUNK)):
            file.write(_CHUNK)
    return content.getvalue()


def lying_npz(num_bytes):
    """Return a .npz file whose directory declares fewer bytes than its content has."""
    content = npz_bomb(num_bytes)
    start = content.rindex(b"PK\x01\x02")
    lying = bytearray(content)
    lying[start + 24 : start + 28] = struct.pack("<I", 132)
    return bytes(lying)


def many_entries(count):
    """Return an archive whose directory lists one file many times."""
    single = npz([("a.npy", b"")])
    start, end = single.index(b"PK\x01\x02"), single.index(b"PK\x05\x06")
    entry = single[start:end]
    tail = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(entry) * count, start, 0
    )
    return single[:start] + entry * count + tail


def compressed_zeros(suffix, num_bytes, start=b""):
    """Return zeros after a start, compressed."""
    content = io.BytesIO()
    with COMPRESSIONS[suffix](content, "wb") as file:
        file.write(start)
        for _ in range(num_bytes // len(_CHUNK)):
            file.write(_CHUNK)
    return content.getvalue()


def tar_header(kind, size):
    """Return the header of a member of a tar archive."""
    member = tarfile.TarInfo("a.txt")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def negative_tar():
    """Return a tar archive with a member of negative size, after which it is read again."""
    member = tarfile.TarInfo("a.txt")
    member.size = -1024
    return member.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def tar_of_headers(kind, num_bytes):
    """Return a compressed tar archive with a header that is followed by much data."""
    return compressed_zeros(".gz", num_bytes, tar_header(kind, num_bytes))


def tar_of_many(count):
    """Return a compressed tar archive with many empty members."""
    content = io.BytesIO()
    with gzip.open(content, "wb", compresslevel=1) as file:
        block = tar_header(tarfile.REGTYPE, 0) * 1000
        for _ in range(count // 1000):
            file.write(block)
        file.write(bytes(1024))
    return content.getvalue()


def deep_tar(levels):
    """Return a tar archive with many headers that describe the next one."""
    record = b"13 path=a.txt\n"
    block = tar_header(tarfile.XHDTYPE, len(record)) + record.ljust(512, b"\0")
    return gzip.compress(block * levels + tar_header(tarfile.REGTYPE, 0) + bytes(1024))


def wav(samples=100, rate=8000, data_bytes=None, channels=1):
    """Return a WAV file of 16 bits; its header may declare another rate and size."""
    data = np.zeros(samples, "<i2").tobytes()
    declared = len(data) if data_bytes is None else data_bytes
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, 0, 2 * channels, 16)
    rest = form + struct.pack("<4sI", b"data", declared) + data
    return struct.pack("<4sI4s", b"RIFF", 4 + len(rest), b"WAVE") + rest


def flac(samples, declared=None):
    """Return silence as FLAC, in which many samples take few bytes."""
    import soundfile

    content = io.BytesIO()
    with soundfile.SoundFile(content, "w", 8000, 1, format="FLAC", subtype="PCM_16") as file:
        silence = np.zeros(min(samples, 10**6), np.int16)
        for _ in range(max(samples // 10**6, 1)):
            file.write(silence)
    found = bytearray(content.getvalue())
    if declared is not None:  # 36 bits in the block STREAMINFO
        found[21] = (found[21] & 0xF0) | (declared >> 32)
        found[22:26] = (declared & 0xFFFFFFFF).to_bytes(4, "big")
    return bytes(found)


def png(width, height):
    """Return a PNG file whose header declares any size."""

    def chunk(name, data):
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = zlib.compress(bytes(10**6))
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def idx(*sizes):
    """Return an IDX file without values."""
    return struct.pack(f">4B{len(sizes)}I", 0, 0, 8, len(sizes), *sizes)
