# SPDX-License-Identifier: Apache-2.0
"""Answers to DNS queries: bytes in, bytes out. A callback looks up the records.

The zone is authoritative for all names below its own; such a name is the GUID of a record. RFC 1034, 1035; RFC 2308 for negative
answers, RFC 6891 for EDNS, RFC 7871 for client subnets, RFC 8482 for ANY.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dnslib import CLASS, EDNS0, NS, OPCODE, QTYPE, RCODE, RR, SOA, DNSHeader, DNSRecord, EDNSOption
from dnslib.label import DNSLabel

from frontage.config.records import Dns
from frontage_records.dns.answers import ContentError, resource_records
from frontage_records.dns.regions import OPTION, Network, Regions, Subnet, SubnetError
from frontage_records.document import check_guid
from frontage_records.errors import GuidError, NotFoundError, RecordError

HEADER = 12
"""Bytes of a message header."""
MAX_UDP = 512
"""Bytes of the largest UDP answer without EDNS (RFC 1035, section 2.3.4)."""
MAX_EDNS_UDP = 1232
"""Bytes of the largest UDP answer with EDNS: no path fragments it (DNS flag day 2020)."""
BADVERS = 16

Find = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Looks up a record's document by GUID. Raises NotFoundError, or another RecordError if the lookup fails."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query."""

    message: bytes | None
    """None: send no answer."""
    result: str
    """The result as one word: ``noerror``, ``nxdomain``, ``nodata``, ``refused``, ``truncated``, ``malformed``, ..."""


class Zone:
    """The zone of the configuration."""

    def __init__(self, settings: Dns, find: Find):
        self.settings = settings
        self._find = find
        self.regions = Regions(settings.regions)
        self._apex = DNSLabel(settings.zone)

    async def answer(self, query: bytes, client: Network, *, udp: bool) -> Answer:
        """Answer a query. ``client``: the source address as a host prefix. No query makes it raise."""
        if len(query) < HEADER:
            return Answer(None, "short")
        if query[2] & 0x80:
            # Answering responses could make two servers loop for ever.
            return Answer(None, "response")
        try:
            asked = DNSRecord.parse(query)
            edns = _edns(asked)
            subnet = _subnet(edns)
        except Exception:
            # dnslib raises whatever its parts raise: struct, Unicode and index errors. No code of ours runs here.
            return Answer(_formerr(query), "malformed")
        reply = DNSRecord(DNSHeader(id=asked.header.id, qr=1, aa=1, rd=asked.header.rd, opcode=asked.header.opcode))
        # Other opcodes may use the sections differently (RFC 2136, section 2.3).
        for question in asked.questions[:1] if asked.header.opcode == OPCODE.QUERY else ():
            reply.add_question(question)
        result = await self._fill(reply, asked, edns, subnet, client)
        most = 65535 if not udp else MAX_UDP if edns is None else min(max(edns.rclass, MAX_UDP), MAX_EDNS_UDP)
        message = bytes(reply.pack())
        if len(message) > most:
            message, result = _truncated(reply), "truncated"
        return Answer(message, result)

    async def _fill(self, reply: DNSRecord, asked: DNSRecord, edns: RR | None, subnet: Subnet | None, client: Network) -> str:
        """Fill ``reply``, and return the result word."""
        scope, extended = 0, 0
        if edns is not None and (edns.ttl >> 16) & 0xFF:
            result, extended = "badvers", BADVERS >> 4
        elif asked.header.opcode != OPCODE.QUERY:
            result = _refuse(reply, RCODE.NOTIMP)
        elif len(asked.questions) != 1:
            result = _refuse(reply, RCODE.FORMERR)
        else:
            near, scope = self.regions.near(client if subnet is None else subnet.network)
            result = await self._look_up(reply, asked.questions[0], near)
        if edns is not None:
            options = [] if subnet is None else [EDNSOption(OPTION, subnet.answer(scope))]
            reply.add_ar(EDNS0(udp_len=MAX_EDNS_UDP, ext_rcode=extended, opts=options))
        return result

    async def _look_up(self, reply: DNSRecord, question: Any, near: tuple[int, ...]) -> str:
        name, kind = DNSLabel([label.lower() for label in question.qname.label]), question.qtype
        if question.qclass != CLASS.IN or not name.matchSuffix(self._apex) or kind in (QTYPE.AXFR, QTYPE.IXFR):
            return _refuse(reply, RCODE.REFUSED)
        try:
            found = self._own() if name == self._apex else await self._records(name, near)
        except NotFoundError:
            self._negative(reply)
            reply.header.rcode = RCODE.NXDOMAIN
            return "nxdomain"
        except ContentError:
            return _refuse(reply, RCODE.SERVFAIL, "bad_record")
        except RecordError:
            return _refuse(reply, RCODE.SERVFAIL)
        if kind == QTYPE.ANY:
            # RFC 8482, section 4.1: one RRset is enough.
            kind = found[0].rtype if found else kind
        wanted = [record for record in found if record.rtype == kind]
        for record in wanted:
            # Use the question's letter case, which resolvers compare.
            record.rname = question.qname
            reply.add_answer(record)
        if wanted:
            return "noerror"
        self._negative(reply)
        return "nodata"

    async def _records(self, name: DNSLabel, near: tuple[int, ...]) -> list[RR]:
        try:
            guid = check_guid(b".".join(name.label).decode("ascii"))
        except (GuidError, UnicodeDecodeError):
            raise NotFoundError("invalid GUID") from None
        return resource_records(name, await self._find(guid), self.settings.ttl, near)

    def _own(self) -> list[RR]:
        """Return the SOA and NS records of the zone's apex."""
        servers = [RR(self._apex, QTYPE.NS, rdata=NS(name), ttl=self.settings.ttl) for name in self.settings.name_servers]
        return [self._soa(self.settings.ttl), *servers]

    def _negative(self, reply: DNSRecord) -> None:
        """Add the SOA record, which says how long the negative answer holds (RFC 2308, section 3)."""
        reply.add_auth(self._soa(self.settings.negative_ttl))

    def _soa(self, ttl: int) -> RR:
        # There are no secondaries, so the serial does not matter; refresh, retry and expire are those of RFC 1912.
        times = (1, 1200, 180, 1209600, self.settings.negative_ttl)
        return RR(self._apex, QTYPE.SOA, rdata=SOA(self.settings.name_servers[0], self.settings.contact, times), ttl=ttl)


def _refuse(reply: DNSRecord, code: int, word: str | None = None) -> str:
    reply.header.rcode = code
    reply.header.aa = 0
    return word or str(RCODE[code]).lower()


def _edns(asked: DNSRecord) -> RR | None:
    found = [record for record in asked.ar if record.rtype == QTYPE.OPT]
    if len(found) > 1:
        raise ValueError("more than one OPT record (RFC 6891, section 6.1.1)")
    return found[0] if found else None


def _subnet(edns: RR | None) -> Subnet | None:
    if edns is None:
        return None
    given = [option.data for option in edns.rdata if option.code == OPTION]
    if len(given) > 1:
        raise SubnetError("more than one client subnet option")
    return Subnet.read(bytes(given[0])) if given else None


def _formerr(query: bytes) -> bytes:
    """Return a FORMERR answer, with only the header: id, opcode and RD."""
    (ident,) = struct.unpack("!H", query[:2])
    flags = 0x8000 | (query[2] & 0x79) << 8 | RCODE.FORMERR
    return struct.pack("!6H", ident, flags, 0, 0, 0, 0)


def _truncated(reply: DNSRecord) -> bytes:
    """Return the reply truncated, without records, so that no partial RRset is used (RFC 2181, section 9)."""
    short = DNSRecord(reply.header, questions=reply.questions, ar=[record for record in reply.ar if record.rtype == QTYPE.OPT])
    short.header.tc = 1
    return bytes(short.pack())
