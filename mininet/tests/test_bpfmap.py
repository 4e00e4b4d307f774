# SPDX-License-Identifier: Apache-2.0
"""Reading a pinned BPF map."""

import ctypes
import os
import struct
from pathlib import Path

import pytest

from frontage_testbed import bpfmap
from frontage_testbed.bpfmap import BpfError, PinnedMap
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, needs_root

BPF_MAP_CREATE, BPF_MAP_UPDATE_ELEM, BPF_OBJ_PIN = 0, 2, 6
BPF_MAP_TYPE_HASH = 1


def call(command: int, attributes: bytes) -> int:
    return bpfmap._bpf(command, ctypes.create_string_buffer(attributes, max(len(attributes), 32)))


def make_map(path: Path) -> None:
    """Create a hash map with 2-byte keys and 16-byte values, with 80 -> (5, 7)."""
    fd = call(BPF_MAP_CREATE, struct.pack("=IIII", BPF_MAP_TYPE_HASH, 2, 16, 8))
    key, value = (
        ctypes.create_string_buffer(struct.pack("=H", 80), 2),
        ctypes.create_string_buffer(struct.pack("=QQ", 5, 7), 16),
    )
    call(BPF_MAP_UPDATE_ELEM, struct.pack("=IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
    name = ctypes.create_string_buffer(os.fsencode(path))
    call(BPF_OBJ_PIN, struct.pack("=QII", ctypes.addressof(name), fd, 0))


@needs_root
def test_pinned_map_returns_value_or_none(tmp_path: Path) -> None:
    def body(box: Sandbox) -> object:
        make_map(box.bpf / "map")
        pinned = PinnedMap(box.bpf / "map", 2, 16)
        value, missing = pinned.get(struct.pack("=H", 80)), pinned.get(struct.pack("=H", 81))
        pinned.close()
        return [list(struct.unpack("=QQ", value)) if value else None, missing]

    assert Sandboxed(body, tmp_path).result() == [[5, 7], None]


def test_error_names_missing_pin() -> None:
    with pytest.raises(BpfError, match="/nowhere/map"):
        PinnedMap(Path("/nowhere/map"), 2, 16)
