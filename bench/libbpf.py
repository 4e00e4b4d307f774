# SPDX-License-Identifier: Apache-2.0
"""Objects of eBPF programs in the kernel, through the C library libbpf (version 1 or later)."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LRU_HASH = 9
"""Type of a map: BPF_MAP_TYPE_LRU_HASH of linux/bpf.h."""


class _TestRunOptions(ctypes.Structure):
    """struct bpf_test_run_opts of bpf/bpf.h."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("data_in", ctypes.c_void_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("return_value", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class TestRun:
    """The result of a test run."""

    return_value: int
    """The verdict of the last run."""
    nanoseconds: int
    """The mean per run."""


@cache
def _library() -> ctypes.CDLL:
    name = ctypes.util.find_library("bpf")
    if name is None:
        raise FileNotFoundError("libbpf is missing: install the package libbpf1 or libbpf-dev")
    library = ctypes.CDLL(name, use_errno=True)
    for function in ("bpf_object__open_file", "bpf_object__find_program_by_name"):
        getattr(library, function).restype = ctypes.c_void_p
    return library


def _checked(what: str, result: int) -> int:
    if result < 0:
        raise OSError(-result, f"{what}: {os.strerror(-result)}")
    return result


def create_map(kind: int, name: str, key_size: int, value_size: int, entries: int) -> int:
    """Create a map that no object contains, and return its file descriptor. Raises OSError."""
    result = _library().bpf_map_create(kind, name.encode(), key_size, value_size, entries, None)
    return _checked(f"creating the map {name}", result)


def possible_cores() -> int:
    """Return the number of values in an entry of a per-core map. Raises OSError."""
    return _checked("counting the cores", _library().libbpf_num_possible_cpus())


class Object:
    """The programs and maps of an object file, in the kernel until this process ends. Raises OSError."""

    def __init__(self, path: Path):
        opened = _library().bpf_object__open_file(str(path).encode(), None)
        if not opened:
            raise OSError(ctypes.get_errno(), f"{path}: libbpf cannot open it")
        self._object = ctypes.c_void_p(opened)
        _checked(f"loading {path}", _library().bpf_object__load(self._object))

    def update(self, name: str, key: bytes, value: bytes) -> None:
        """Set an entry of a map. Raises OSError."""
        _checked(f"updating the map {name}", _library().bpf_map_update_elem(self._map(name), key, value, 0))

    def lookup(self, name: str, key: bytes, size: int) -> bytes:
        """Return the ``size`` bytes of an entry of a map. Raises OSError."""
        value = ctypes.create_string_buffer(size)
        _checked(f"looking up in the map {name}", _library().bpf_map_lookup_elem(self._map(name), key, value))
        return value.raw

    def test_run(self, program: str, packet: bytes, repeat: int) -> TestRun:
        """Run an XDP program on a packet. Raises OSError."""
        found = _library().bpf_object__find_program_by_name(self._object, program.encode())
        if not found:
            raise OSError(0, f"no program {program} in the object")
        descriptor = _library().bpf_program__fd(ctypes.c_void_p(found))
        data = ctypes.create_string_buffer(packet, len(packet))
        options = _TestRunOptions(
            size=ctypes.sizeof(_TestRunOptions),
            data_in=ctypes.addressof(data),
            data_size_in=len(packet),
            repeat=repeat,
        )
        _checked(f"running {program}", _library().bpf_prog_test_run_opts(descriptor, ctypes.byref(options)))
        return TestRun(options.return_value, options.duration)

    def _map(self, name: str) -> int:
        return _checked(f"no map {name}", _library().bpf_object__find_map_fd_by_name(self._object, name.encode()))
