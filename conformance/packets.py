# SPDX-License-Identifier: Apache-2.0
"""Random packets that a program's parser accepts.

A packet is a walk through the parser's states, with the headers that they extract and the field values that the
transitions need. Other values are often those of table entries and of the program's constants.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

from bmv2_json import CompiledProgram, Ref, evaluate

PORTS = range(1, 9)
PORT_BITS = 9
STEPS = 40
"""Maximum number of states of a walk, because parsers may have loops."""
LONGEST_VARBIT = 512
FAVOURITES = 3
"""Number of the program's constants, and of random numbers, among the preferred values of a width."""
LENGTHS_WITH_HEADER = ("totallen", "total_len", "totallength", "total_length", "length_", "hdr_length")
UDP_LENGTH = ("length", 16)
"""Name and width of UDP's length field; fields of other widths have other meanings."""
LENGTHS_WITHOUT_HEADER = ("payloadlen", "payload_len", "payload_length")


class Values:
    """Values that are likely to matter. For each width, a few values are preferred, so that the values that one table's
    action sets occur in another table's key, and packets hit entries."""

    def __init__(self, random: Random, program: CompiledProgram):
        self.random = random
        self.known = 0.75
        """Probability that a field gets one of its known relevant values."""
        self.constants = program.constants
        self.keys: dict[Ref, list[int]] = defaultdict(list)
        """Relevant values of fields in table keys or in comparisons with constants."""
        for ref, values in program.compared.items():
            self.keys[ref] += sorted(values)
        self._learned: dict[int, list[int]] = defaultdict(list)
        """Parameters of entries' actions, by width."""
        self._ports: list[int] = []
        self._favourites: dict[int, list[int]] = {PORT_BITS: list(PORTS)}

    def any(self, width: int, ref: Ref | None = None) -> int:
        choice = self.random.random()
        known = self.keys.get(ref, []) if ref else []
        if known and choice < self.known:
            return self.random.choice(known)
        match self.random.randrange(10):
            case 0:
                return self.random.getrandbits(width)
            case 1:
                return self.random.choice((0, 1, -1)) & ((1 << width) - 1)
            case 2 | 3 | 4 if self._learned[width]:
                return self.random.choice(self._learned[width])
            case _:
                return self.random.choice(self.favourites(width))

    def learn(self, ref: Ref | None, width: int, value: int) -> None:
        """Record a value of an entry: of a key field, or of an action parameter."""
        # Repeated values are more likely.
        (self.keys[ref] if ref else self._learned[width]).append(value)
        if ref and width == PORT_BITS and value in PORTS and value not in self._ports:
            self._ports.append(value)

    def port(self) -> int:
        """Return an ingress port, usually one that occurs in keys of that width."""
        return self.random.choice(self._ports if self._ports and self.random.random() < 0.8 else PORTS)

    def favourites(self, width: int) -> list[int]:
        if width not in self._favourites:
            fitting = [value for value in self.constants if value < 1 << width]
            ours = self.random.sample(fitting, min(len(fitting), FAVOURITES))
            self._favourites[width] = ours + [self.random.getrandbits(width) for _ in range(FAVOURITES)]
        return self._favourites[width]


class _Frame:
    """A packet under construction."""

    def __init__(self) -> None:
        self.bits = 0
        self.length = 0
        self.places: dict[Ref, tuple[int, int]] = {}
        """Position and width of the fields."""
        self.headers: list[tuple[str, int, int]] = []
        """Names of the headers with their begin and end."""
        self.wanted: list[tuple[int, int, int, int]] = []
        """Bits that a lookahead needs: position, width, value, mask."""

    def append(self, width: int, value: int) -> None:
        self.bits = self.bits << width | value & ((1 << width) - 1)
        self.length += width

    def put(self, place: tuple[int, int], value: int, mask: int = -1) -> None:
        position, width = place
        shift = self.length - position - width
        if shift >= 0:
            mask &= (1 << width) - 1
            self.bits = self.bits & ~(mask << shift) | (value & mask) << shift

    def get(self, place: tuple[int, int]) -> int:
        position, width = place
        return self.bits >> (self.length - position - width) & ((1 << width) - 1)

    def values(self) -> dict[Ref, int]:
        return {ref: self.get(place) for ref, place in self.places.items()}

    def extract(self, name: str, fields: list[tuple[str, int]], values: Values, varbit: int) -> None:
        begin = self.length
        for field, width in fields:
            here = width or varbit
            self.places[name, field] = (self.length, here)
            self.append(here, values.any(here, (name, field)) if here else 0)
        for wanted in [wanted for wanted in self.wanted if wanted[0] + wanted[1] <= self.length]:
            self.wanted.remove(wanted)
            self.put(wanted[:2], *wanted[2:])
        self.headers.append((name, begin, self.length))


def packet(program: CompiledProgram, values: Values, cut: bool) -> tuple[int, bytes]:
    """Return the ingress port and the frame, which is sometimes truncated."""
    random = values.random
    frame, port = _Frame(), values.port()
    indices: dict[str, int] = defaultdict(int)
    name: str | None = program.start
    for _ in range(STEPS):
        if name is None:
            break
        state = program.states[name]
        for op in state["parser_ops"]:
            _operate(program, frame, values, indices, op)
        transitions = state["transitions"]
        if not transitions:
            break
        # Prefer transitions that continue parsing, and those for a known header.
        weights = [(1 if way["type"] == "default" else 4) * (1 if way["next_state"] is None else 4) for way in transitions]
        (chosen,) = random.choices(transitions, weights)
        if chosen["type"] == "hexstr" and _is_of_port(state) and random.random() < 0.9:
            chosen = transitions[-1]  # the default: most packets come by an ordinary port
        if chosen["type"] == "hexstr":
            wanted = _want(program, frame, indices, state["transition_key"], chosen)
            port = port if wanted is None else wanted
        name = chosen["next_state"]
    frame.append(8 * random.choice((0, 0, 1, 4, 20, 64)), random.getrandbits(8 * 64))
    frame.append(-frame.length % 8, 0)
    if random.random() < 0.8:
        _set_lengths(frame)
    if random.random() < 0.8:
        _set_checksums(program, frame)
    whole = frame.bits.to_bytes(frame.length // 8, "big")
    if cut and random.random() < 0.03:
        whole = whole[: random.randrange(len(whole) + 1)]
    return port, whole or b"\0"


def _is_of_port(state: dict[str, Any]) -> bool:
    return any(part["value"] == ["standard_metadata", "ingress_port"] for part in state["transition_key"])


def _operate(program: CompiledProgram, frame: _Frame, values: Values, indices: dict[str, int], op: dict[str, Any]) -> None:
    if op["op"] == "advance":
        frame.append(
            min(evaluate(op["parameters"][0], frame.values()) or 0, LONGEST_VARBIT), values.random.getrandbits(LONGEST_VARBIT)
        )
    if op["op"] not in ("extract", "extract_VL"):
        return
    target = op["parameters"][0]
    header = target["value"]
    if target["type"] in ("stack", "union_stack"):
        stack, *member = [header] if isinstance(header, str) else header
        elements = program.stacks[stack]
        if indices[stack] >= len(elements):
            return  # the parser ends here with an error
        header = ".".join([elements[indices[stack]], *member])
        indices[stack] += 1
    varbit = 0
    if op["op"] == "extract_VL":
        length = evaluate(op["parameters"][1], frame.values())
        varbit = values.random.randrange(0, 65) * 8 if length is None else length
        varbit = varbit % (LONGEST_VARBIT + 1)
    if header in program.headers:
        frame.extract(header, program.headers[header], values, varbit)


def _want(
    program: CompiledProgram, frame: _Frame, indices: dict[str, int], key: list[dict[str, Any]], chosen: dict[str, Any]
) -> int | None:
    """Set the fields for this transition as far as possible; return the ingress port if it is part of the key."""
    value, mask = int(chosen["value"], 16), int(chosen["mask"], 16) if chosen["mask"] else -1
    port = None
    for part in reversed(key):
        what = part["value"]
        place: tuple[int, int] | None = None
        width = 8
        match part["type"]:
            case "field":
                width = dict(program.headers.get(what[0], [])).get(what[1], 8)
                place = frame.places.get((what[0], what[1]))
                if what == ["standard_metadata", "ingress_port"]:
                    port = value & 0x1FF
            case "stack_field" if indices[what[0]]:
                last = program.stacks[what[0]][indices[what[0]] - 1]
                width = dict(program.headers.get(last, [])).get(what[1], 8)
                place = frame.places.get((last, what[1]))
            case "lookahead":
                offset, width = what
                frame.wanted.append((frame.length + offset, width, value & ((1 << width) - 1), mask & ((1 << width) - 1)))
        if place is not None:
            frame.put(place, value, mask)
        # Each part of a key is padded to whole bytes.
        value, mask = value >> (width + 7) // 8 * 8, mask >> (width + 7) // 8 * 8
    return port


def _set_lengths(frame: _Frame) -> None:
    """Set length fields, recognized by their usual names, to the packet's lengths."""
    for name, begin, end in frame.headers:
        for (header, field), place in frame.places.items():
            if header == name and (field.lower() in LENGTHS_WITH_HEADER or (field, place[1]) == UDP_LENGTH):
                frame.put(place, (frame.length - begin) // 8)
            if header == name and field.lower() in LENGTHS_WITHOUT_HEADER:
                frame.put(place, (frame.length - end) // 8)


def _set_checksums(program: CompiledProgram, frame: _Frame) -> None:
    """Set the checksums that the program verifies, if they cover only fields (RFC 1071)."""
    for target, calculation in program.verified():
        parts: list[tuple[int, int]] = []
        for part in calculation["input"]:
            if part["type"] == "field" and (place := frame.places.get((part["value"][0], part["value"][1]))):
                parts.append((place[1], frame.get(place)))
            elif part["type"] == "hexstr":
                parts.append((part["bitwidth"], int(part["value"], 16)))
        if calculation["algo"] != "csum16" or len(parts) != len(calculation["input"]) or target not in frame.places:
            continue
        bits = width = 0
        for size, value in parts:
            bits, width = bits << size | value, width + size
        bits <<= -width % 16
        total = sum(bits >> shift & 0xFFFF for shift in range(0, width, 16))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        frame.put(frame.places[target], ~total)
