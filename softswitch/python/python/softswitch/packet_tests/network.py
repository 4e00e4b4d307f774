# SPDX-License-Identifier: Apache-2.0
"""A network namespace with a veth pair for each port. Linux removes it with the last process in it."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import RunError

_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL = 0x8946
_OFFLOADS = (0x1F, 0x24, 0x2C, 0x19, 0x17, 0x15)
"""Commands that set TSO, GSO, GRO, scatter-gather, and TX and RX checksums (linux/ethtool.h, ETHTOOL_S*)."""


def switch_link(port: int) -> str:
    """Return the name of the switch's end of a port's veth pair."""
    return f"veth{2 * port}"


def test_link(port: int) -> str:
    """Return the name of the tests' end of a port's veth pair."""
    return f"veth{2 * port + 1}"


def enter_namespace(ports: Iterable[int]) -> None:
    """Move this process to a new network namespace that has a veth pair for each port."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise RunError(f"network namespace: {os.strerror(ctypes.get_errno())}: run as root")
    for name in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")  # no router solicitations between the packets of the tests
    _ip("link", "set", "lo", "up")
    for port in ports:
        _ip("link", "add", switch_link(port), "type", "veth", "peer", "name", test_link(port))
        for link in (switch_link(port), test_link(port)):
            _offloads_off(link)
            _ip("link", "set", link, "up", "promisc", "on")


def _ip(*arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise RunError("ip: program not found: install iproute2") from error
    if done.returncode != 0:
        raise RunError(f"ip {' '.join(arguments)}: {done.stderr.strip()}: run as root, on a kernel with veth interfaces")


def _offloads_off(link: str) -> None:
    """Turn offloads off, so that tests see real checksums and segments."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in _OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", link.encode(), ctypes.addressof(value))
            with contextlib.suppress(OSError):  # this kind of link has no such offload
                fcntl.ioctl(sock, _SIOCETHTOOL, request)
