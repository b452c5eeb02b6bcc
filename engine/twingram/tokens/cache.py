"""The disk cache: arrays that take long to compute and depend on nothing but their key.

In: a kind, a key (a digest of everything the arrays depend on), named arrays. Out: the same arrays, mapped read-only.
Invariant: a file is whole or absent (written beside its place, then moved there in one step), so any number of
processes may share the folder. A file that is damaged, foreign or of another version counts as absent, and so does a
folder that cannot be read or written: the cache never raises.
Cost: loading checks one CRC over the file, about 1 ms per 2 MB; the oldest files go when the folder outgrows its limit.

`TWINGRAM_CACHE` moves the folder, or switches the cache off (`0`, `off`, `no`, `false`).
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMAT", "LIMIT_BYTES", "file_key", "folder", "load", "store"]

FORMAT = 1
"""Part of every path. It changes with the layout of files and with the meaning of what is kept in them."""
LIMIT_BYTES = 1 << 30
_MAGIC = b"twingram cache\x00\x01"
_ALIGNMENT = 64
_HEAD = len(_MAGIC) + 8
_WHOLE = 64 << 20  # files up to this size are identified by all of their content
_KINDS = "biuf"

Arrays = Mapping[str, NDArray[Any]]


def folder() -> Path | None:
    """Where files are kept, or None if the cache is switched off."""
    chosen = os.environ.get("TWINGRAM_CACHE", "").strip()
    if chosen.lower() in ("0", "off", "no", "false"):
        return None
    if chosen:
        return Path(chosen).expanduser()
    with suppress(RuntimeError):  # no home folder
        return _user_cache() / "twingram"
    return None


def _user_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return chosen if chosen.is_absolute() else Path.home() / ".cache"


def file_key(path: str | os.PathLike[str], *more: object) -> bytes:
    """A key for what is read out of a file: its content; of a huge one its size, time, place and first mebibyte."""
    digest = blake2b(repr(more).encode(), digest_size=16)
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size <= _WHOLE:
            digest.update(file.read())
        else:
            digest.update(repr((status.st_size, status.st_mtime_ns, os.path.realpath(path))).encode())
            digest.update(file.read(1 << 20))
    return digest.digest()


def _path(root: Path, kind: str, key: bytes) -> Path:
    name = key.hex() if len(key) <= 32 else blake2b(key, digest_size=32).hexdigest()
    return root / f"v{FORMAT}" / kind / f"{name}.bin"


def load(kind: str, key: bytes) -> dict[str, NDArray[Any]] | None:
    """What was stored under this kind and key, or None."""
    root = folder()
    if root is None:
        return None
    path = _path(root, kind, key)
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        found = _read(data, kind, key)
        os.utime(path)  # the oldest go first
    except (OSError, ValueError, KeyError, TypeError):  # absent, empty, damaged: all the same
        return None
    return found


def _read(data: mmap.mmap, kind: str, key: bytes) -> dict[str, NDArray[Any]]:
    length, check = (int.from_bytes(data[at : at + 4], "little") for at in (len(_MAGIC), len(_MAGIC) + 4))
    if data[: len(_MAGIC)] != _MAGIC or crc32(memoryview(data)[_HEAD:]) != check:
        raise ValueError("not one of our files, or not a whole one")
    header = json.loads(data[_HEAD : _HEAD + length])
    if header["kind"] != kind or header["key"] != key.hex():
        raise ValueError("a file in another's place")
    found = {}
    for name, layout, shape, start in header["arrays"]:
        dtype = np.dtype(layout)
        if dtype.kind not in _KINDS:
            raise ValueError("only numbers are kept")
        count = int(np.prod(shape, dtype=np.int64))
        found[name] = np.frombuffer(data, dtype=dtype, count=count, offset=start).reshape(shape)
    return found


def store(kind: str, key: bytes, arrays: Arrays) -> None:
    """Keep arrays for later. Nothing happens where that is not possible."""
    root = folder()
    if root is None:
        return
    path, data = _path(root, kind, key), _written(kind, key, arrays)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".", suffix=".tmp", dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            whole = _write(file, data)
        try:
            if whole:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _make_room(root)


def _write(file: IO[bytes], data: bytes) -> bool:
    """Whether all of it went through: the disk may be full."""
    try:
        file.write(data)
        file.flush()
    except OSError:
        return False
    return True


def _written(kind: str, key: bytes, arrays: Arrays) -> bytes:
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.kind not in _KINDS:
            raise ValueError(f"array {name!r} holds {array.dtype}, and only numbers can be kept")
    listed = [[name, array.dtype.str, list(array.shape), 0] for name, array in plain.items()]
    room = len(json.dumps({"kind": kind, "key": key.hex(), "arrays": listed})) + 20 * len(listed)  # for the real starts
    start = _aligned(_HEAD + room)
    parts = []
    for entry, array in zip(listed, plain.values(), strict=True):
        entry[3] = start
        size = _aligned(array.nbytes)
        parts.append(array.tobytes().ljust(size, b"\0"))
        start += size
    header = json.dumps({"kind": kind, "key": key.hex(), "arrays": listed}).encode()
    body = header.ljust(_aligned(_HEAD + room) - _HEAD) + b"".join(parts)
    return b"".join((_MAGIC, len(header).to_bytes(4, "little"), crc32(body).to_bytes(4, "little"), body))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _make_room(root: Path) -> None:
    """Remove the files not used for longest while all together take more than the limit."""
    files = []
    for path in root.glob("v*/*/*"):
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT_BYTES:
            break
        with suppress(OSError):  # another process was faster, or still reads it
            path.unlink()
        total -= size
