# SPDX-License-Identifier: Apache-2.0
"""Frames as bytes, with the few fields that the switch may change within reach, and their checksums."""

import struct
from ipaddress import IPv4Address, IPv6Address

IP = IPv4Address | IPv6Address

TCP = 6
UDP = 17
ICMP6 = 58
EXTENSIONS = {0, 43, 60}
TIMESTAMP = bytes([8, 10])


def ones_complement_sum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ipv4_valid(frame: bytes) -> bytes:
    """Return the frame with a correct IPv4 header checksum, whatever follows."""
    if frame[12:14] == b"\x08\x00":
        head = frame[14:24] + b"\0\0" + frame[26:34]
        return frame[:24] + (0xFFFF ^ ones_complement_sum(head)).to_bytes(2, "big") + frame[26:]
    return frame


def overwritten(frame: bytes, at: int, *values: int) -> bytes:
    """Return the frame with other bytes from `at` on, and unchanged checksums."""
    return frame[:at] + bytes(values) + frame[at + len(values) :]


def with_extension(frame: bytes, kind: int, units: int = 0) -> bytes:
    """Return an IPv6 frame with one more extension header of this type."""
    head = bytearray(frame[:54])
    extra = bytes([head[20], units, 0, 0, 0, 0, 0, 0]) + bytes(8 * units)
    head[20] = kind
    head[18:20] = (int.from_bytes(head[18:20], "big") + len(extra)).to_bytes(2, "big")
    return bytes(head) + extra + frame[54:]


class Frame:
    """An Ethernet frame of IPv4 or IPv6, optionally with TCP or UDP. Fields are read and set in place, followed by
    `with_checksums`."""

    def __init__(self, data: bytes):
        self.data = bytearray(data)
        self.ipv6 = self.data[12:14] == b"\x86\xdd"
        self.l4 = 14
        self.protocol = 0
        if self.ipv6:
            self.l4 = 54
            self.protocol = self.data[20]
            while self.protocol in EXTENSIONS:
                self.protocol, length = self.data[self.l4], self.data[self.l4 + 1]
                self.l4 += 8 + 8 * length
        else:
            self.l4 = 14 + 4 * (self.data[14] & 15)
            self.protocol = self.data[23]

    def _address(self, offset4: int, offset6: int) -> IP:
        if self.ipv6:
            return IPv6Address(bytes(self.data[offset6 : offset6 + 16]))
        return IPv4Address(bytes(self.data[offset4 : offset4 + 4]))

    @property
    def src(self) -> IP:
        return self._address(26, 22)

    @property
    def dst(self) -> IP:
        return self._address(30, 38)

    def word(self, offset: int) -> int:
        """Return the 16 bits at `offset` from the start of layer 4."""
        return int(struct.unpack_from("!H", self.data, self.l4 + offset)[0])

    @property
    def sport(self) -> int:
        return self.word(0)

    @property
    def dport(self) -> int:
        return self.word(2)

    @property
    def ck(self) -> int:
        return self.data[self.l4 + 12] >> 3 & 1

    @property
    def tsval(self) -> int:
        return int(struct.unpack_from("!I", self.data, self._timestamp())[0])

    @property
    def tsecr(self) -> int:
        return int(struct.unpack_from("!I", self.data, self._timestamp() + 4)[0])

    def _timestamp(self) -> int:
        """Return the offset of TSval, by a byte-wise walk through the options (the switch walks words)."""
        at, end = self.l4 + 20, self.l4 + 4 * (self.data[self.l4 + 12] >> 4)
        while at < end and self.data[at] != 0:
            if self.data[at] == 1:
                at += 1
            elif self.data[at] == 8:
                return at + 2
            else:
                at += max(2, self.data[at + 1])
        raise ValueError("frame has no TCP timestamps")

    def rewritten(
        self,
        macs: tuple[str, str] | None = None,
        src: tuple[IP, int] | None = None,
        dst: tuple[IP, int] | None = None,
        tsval: int | None = None,
        ck: int | None = None,
        second_hop: int | None = None,
        hops: int = 1,
    ) -> bytes:
        """Return this frame after a router: new MACs (source, destination), a lower TTL, other given changes, and
        new checksums."""
        new = Frame(bytes(self.data))
        data = new.data
        if macs is not None:
            data[6:12], data[0:6] = (bytes.fromhex(mac.replace(":", "")) for mac in macs)
        data[21 if new.ipv6 else 22] -= hops
        if src is not None:
            data[(22 if new.ipv6 else 26) : (38 if new.ipv6 else 30)] = src[0].packed
            struct.pack_into("!H", data, new.l4, src[1])
        if dst is not None:
            data[(38 if new.ipv6 else 30) : (54 if new.ipv6 else 34)] = dst[0].packed
            struct.pack_into("!H", data, new.l4 + 2, dst[1])
        if tsval is not None:
            struct.pack_into("!I", data, new._timestamp(), tsval)
        if ck is not None:
            data[new.l4 + 12] = data[new.l4 + 12] & ~8 | ck << 3
        if second_hop is not None:
            data[new.l4 + 12] = data[new.l4 + 12] & ~4 | second_hop << 2
        return new.with_checksums()

    def refused(self) -> bytes:
        """Return this frame as a server sends it back: with exchanged addresses and ports."""
        macs = (self.data[0:6].hex(), self.data[6:12].hex())
        return self.rewritten(macs, (self.dst, self.dport), (self.src, self.sport), hops=0)

    def with_checksums(self) -> bytes:
        if not self.ipv6:
            self.data[24:26] = b"\0\0"
            struct.pack_into("!H", self.data, 24, 0xFFFF ^ ones_complement_sum(bytes(self.data[14 : self._l3_end()])))
        if self.has_checksum(TCP):
            struct.pack_into("!H", self.data, self.l4 + 16, 0)
            struct.pack_into("!H", self.data, self.l4 + 16, 0xFFFF ^ self._l4_sum())
        elif self.has_checksum(UDP):
            struct.pack_into("!H", self.data, self.l4 + 6, 0)
            # A checksum of zero means that the sender computed none (RFC 768).
            struct.pack_into("!H", self.data, self.l4 + 6, 0xFFFF ^ self._l4_sum() or 0xFFFF)
        return bytes(self.data)

    def _l3_end(self) -> int:
        return 14 + 4 * (self.data[14] & 15)

    def has_checksum(self, *protocols: int) -> bool:
        """Return whether the frame holds a whole segment of one of these protocols with a checksum, which UDP may
        omit."""
        fragment = not self.ipv6 and struct.unpack_from("!H", self.data, 20)[0] & 0x3FFF
        if self.protocol not in protocols or fragment:
            return False
        if self.protocol == UDP:
            return len(self.data) >= self.l4 + 8 and 8 <= self.word(4) <= len(self.data) - self.l4 and self.word(6) != 0
        return len(self.data) >= self.l4 + 20

    def _l4_sum(self) -> int:
        base, length = (54, 18) if self.ipv6 else (14, 16)
        end = base + int(struct.unpack_from("!H", self.data, length)[0])
        if self.protocol == UDP:
            end = self.l4 + self.word(4)
        segment = bytes(self.data[self.l4 : end])
        pseudo = self.src.packed + self.dst.packed + struct.pack("!II", len(segment), self.protocol)
        return ones_complement_sum(pseudo + segment)

    def bad_checksums(self) -> list[str]:
        """Return the names of the wrong checksums in this frame: IPv4, TCP, UDP, ICMPv6."""
        bad = []
        if not self.ipv6 and ones_complement_sum(bytes(self.data[14 : self._l3_end()])) != 0xFFFF:
            bad.append("IPv4")
        if self.has_checksum(TCP, UDP, ICMP6) and self._l4_sum() != 0xFFFF:
            bad.append({TCP: "TCP", UDP: "UDP", ICMP6: "ICMPv6"}[self.protocol])
        return bad
