# SPDX-License-Identifier: Apache-2.0
"""Reads a pinned BPF map with the system call itself.

The demo samples every server twenty times a second, which is too often for one command per sample.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from pathlib import Path

BPF_MAP_LOOKUP_ELEM = 1
BPF_OBJ_GET = 7
# Numbers for the architectures on which Debian's kernels have eBPF.
SYSCALL = {"x86_64": 321, "aarch64": 280, "ppc64le": 361, "s390x": 351, "riscv64": 280}.get(platform.machine())

_libc = ctypes.CDLL(None, use_errno=True)


class BpfError(OSError):
    """The kernel returned an error."""


def _bpf(command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    if SYSCALL is None:
        raise BpfError(f"{platform.machine()}: unknown number of the system call bpf: add it to SYSCALL")
    result = int(_libc.syscall(SYSCALL, command, attributes, len(attributes)))
    if result < 0:
        raise BpfError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class PinnedMap:
    """A map pinned in a BPF file system."""

    def __init__(self, path: Path, key_size: int, value_size: int) -> None:
        name = ctypes.create_string_buffer(os.fsencode(path))
        # The member of union bpf_attr for BPF_OBJ_GET: pathname, bpf_fd, file_flags.
        attributes = ctypes.create_string_buffer(struct.pack("=QIIQQ", ctypes.addressof(name), 0, 0, 0, 0), 32)
        try:
            self._fd = _bpf(BPF_OBJ_GET, attributes)
        except BpfError as error:
            raise BpfError(error.errno, f"{error.strerror}: {path}") from None
        self._key = ctypes.create_string_buffer(key_size)
        self._value = ctypes.create_string_buffer(value_size)
        # The member for lookups: map_fd, (padding), key, value, flags.
        self._lookup = ctypes.create_string_buffer(
            struct.pack("=IIQQQ", self._fd, 0, ctypes.addressof(self._key), ctypes.addressof(self._value), 0), 32
        )

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        self._key.raw = key
        try:
            _bpf(BPF_MAP_LOOKUP_ELEM, self._lookup)
        except BpfError as error:
            if error.errno == errno.ENOENT:
                return None
            raise
        return self._value.raw

    def close(self) -> None:
        """Release the map."""
        os.close(self._fd)
