# SPDX-License-Identifier: Apache-2.0
"""Random v1model programs with defined behaviour: a seed determines the program.

A program reads only fields of valid headers and initialized variables, indexes header stacks with constants, and never
divides by a variable. So all compilers and switches must produce the same packets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

WIDTHS = (1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 100, 127, 128, 129, 200)
DEPTH = 4
"""Maximum depth of expressions."""
STACK = 3
"""Elements of the header stack."""
HASHES = ("crc16", "crc32", "csum16", "identity")
MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")

_TEMPLATE = """#include <core.p4>
#include <v1model.p4>

enum bit<8> kind_t {{ NONE = 0, A = 1, B = 2, STACK = 3 }}
{headers}
header element_t {{ bit<1> last; bit<7> x; bit<16> y; }}
struct headers_t {{ base_t base; a_t a; b_t b; element_t[{stack}] s; }}
struct meta_t {{
{meta}
}}

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t std) {{
    state start {{
        p.extract(h.base);
        transition select(h.base.kind) {{
            1: a;
            2: b;
            3 &&& 0x7f: stack;
            {select}
            default: accept;
        }}
    }}
    state a {{ p.extract(h.a); {in_a} transition select(h.a.next) {{ 1 .. 9: b; default: accept; }} }}
    state b {{ p.extract(h.b); transition accept; }}
    state stack {{ p.extract(h.s.next); transition select(h.s.last.last) {{ 1: accept; 0: stack; }} }}
}}
control V(inout headers_t h, inout meta_t m) {{ apply {{ }} }}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t std) {{
{ingress}
}}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t std) {{
    apply {{
{egress}
    }}
}}
control C(inout headers_t h, inout meta_t m) {{
    apply {{ update_checksum({checksum_if}, {{ {checksum} }}, h.base.checksum, HashAlgorithm.csum16); }}
}}
control D(packet_out p, in headers_t h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@dataclass(frozen=True)
class Type:
    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True)
class Program:
    """The text of a program in parts, so that a reduction can remove statements."""

    parts: dict[str, str]
    declarations: tuple[str, ...]
    ingress: tuple[str, ...]
    egress: tuple[str, ...]

    def __str__(self) -> str:
        apply = ["    apply {", *(f"        {line}" for line in self.ingress), "    }"]
        ingress = [*(f"    {line}" for line in self.declarations), *apply]
        egress = [f"        {line}" for line in self.egress]
        return _TEMPLATE.format(ingress="\n".join(ingress), egress="\n".join(egress), **self.parts)

    def reduced(self, fails: Callable[[Program], bool]) -> Program:
        """Return a program without the statements that the failure does not need."""
        program = self
        for name in ("egress", "ingress", "declarations"):
            index = 0
            while index < len(getattr(program, name)):
                statements = getattr(program, name)
                smaller = replace(program, **{name: statements[:index] + statements[index + 1 :]})
                if fails(smaller):
                    program = smaller
                else:
                    index += 1
        return program


@dataclass
class Scope:
    """The fields and variables that expressions may read, and statements may write."""

    readable: list[tuple[str, Type]]
    writable: list[tuple[str, Type]] = field(default_factory=list)

    def plus(self, *variables: tuple[str, Type], constant: bool = False) -> Scope:
        added = list(variables)
        return Scope(self.readable + added, self.writable if constant else self.writable + added)


class Generator:
    def __init__(self, seed: int):
        self.random = Random(seed)
        self._names = 0
        # For BMv2, p4c refuses loops over ranges (and runs other loops at most once), and several applications of a table.
        self._has_loops = self.random.random() < 0.15
        self._has_repeats = self.random.random() < 0.15
        self.tables: list[tuple[str, list[str]]] = []
        """Names of the tables, and of their actions. Odd tables tell their action, and others whether they hit: BMv2 cannot
        distinguish both in one table."""
        self._unused: list[int] = []

    def program(self) -> Program:
        base, a, b = self._fields("base", 5), self._fields("a", 3), self._fields("b", 3)
        meta = self._fields("m", 5, in_header=False)
        self._optional = {"a": self._scope_of("h.a", a), "b": self._scope_of("h.b", b)}
        element = [("x", Type(7)), ("y", Type(16))]
        self._optional |= {f"s[{i}]": self._scope_of(f"h.s[{i}]", element) for i in range(STACK)}
        variables = self._scope_of("h.base", base) + self._scope_of("m", meta)
        scope = Scope([*variables, ("std.packet_length", Type(32)), ("std.ingress_port", Type(9))], variables)
        sized = [f"h.base.{name}" for name, kind in base if not kind.signed]
        parts = {
            "headers": "\n".join(
                (
                    _header("base_t", [("kind", Type(8)), ("checksum", Type(16)), *base]),
                    _header("a_t", [("next", Type(8)), *a]),
                    _header("b_t", b),
                )
            ),
            "stack": str(STACK),
            "meta": "\n".join(f"    {kind} {name};" for name, kind in meta),
            "select": self.random.choice(("", "16 .. 20: a;", "0x80 &&& 0xc0: b;")),
            "in_a": f"m.{meta[0][0]} = {self.expression(meta[0][1], Scope(self._scope_of('h.base', base)))};",
            "checksum_if": self.random.choice(("true", "h.a.isValid()", "h.base.kind != 2")),
            "checksum": ", ".join((*sized, f"{-sum(t.width for _, t in base if not t.signed) % 16 or 16}w0")),
        }
        ingress = self._ingress(scope)
        egress = [self.statement(scope.plus(("std.egress_port", Type(9)), constant=True), 1, False) for _ in range(4)]
        return Program(parts, tuple(self._declarations), tuple(ingress), tuple(egress))

    def _ingress(self, scope: Scope) -> list[str]:
        self._declarations = []
        for number in range(self.random.randint(1, 6)):
            self._table(number, scope)
            self._unused.append(number)
        self._declarations.append("counter(16, CounterType.packets_and_bytes) count;")
        first = "std.egress_spec = (bit<9>) h.base.kind & 7;"
        return [first, *(self.statement(scope, 0, True) for _ in range(self.random.randint(3, 12)))]

    # Types and values

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def _type(self) -> Type:
        width = self.random.choice(WIDTHS)
        return Type(width, width > 1 and self.random.random() < 0.2)

    def _fields(self, prefix: str, most: int, in_header: bool = True) -> list[tuple[str, Type]]:
        fields = [(self._name(prefix), self._type()) for _ in range(self.random.randint(2, most))]
        missing = -sum(kind.width for _, kind in fields) % 8
        return [*fields, (self._name("pad"), Type(missing))] if in_header and missing else fields

    @staticmethod
    def _scope_of(prefix: str, fields: list[tuple[str, Type]]) -> list[tuple[str, Type]]:
        return [(f"{prefix}.{name}", kind) for name, kind in fields]

    def literal(self, kind: Type) -> str:
        values = (0, 1, (1 << kind.width) - 1, 1 << kind.width - 1, self.random.getrandbits(kind.width))
        value = self.random.choice(values)
        if kind.signed and value >> kind.width - 1:
            return f"({kind.width}s0 - {kind.width}s{(1 << kind.width) - value - 1} - {kind.width}s1)" if kind.width > 1 else "-1s1"
        return f"{kind.width}{'s' if kind.signed else 'w'}{value}"

    def expression(self, kind: Type, scope: Scope, depth: int = 0) -> str:
        """Return an expression of this type."""
        same = [name for name, other in scope.readable if other == kind]
        if depth >= DEPTH or self.random.random() < 0.15:
            return self.random.choice(same) if same and self.random.random() < 0.7 else self.literal(kind)
        forms: list[Callable[[], str]] = [
            lambda: self._binary(kind, scope, depth),
            lambda: self._binary(kind, scope, depth),
            lambda: f"(~{self.expression(kind, scope, depth + 1)})",
            lambda: f"(-{self.expression(kind, scope, depth + 1)})",
            lambda: self._shift(kind, scope, depth),
            lambda: self._cast(kind, scope, depth),
            lambda: f"({self.condition(scope, depth + 1)} ? {self._two(kind, scope, depth, ' : ')})",
        ]
        if not kind.signed:
            forms += [lambda: self._slice(kind, scope, depth)]
            forms += [lambda: self._concatenation(kind, scope, depth)] if kind.width > 1 else []
        return self.random.choice(forms)()

    def _two(self, kind: Type, scope: Scope, depth: int, between: str) -> str:
        return between.join(self.expression(kind, scope, depth + 1) for _ in range(2))

    def _binary(self, kind: Type, scope: Scope, depth: int) -> str:
        operator = self.random.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|"))
        if self.random.random() < 0.15:
            # Compilers may simplify an operation on equal operands, or on a special constant.
            operand = self.expression(kind, scope, depth + 1)
            pair = [operand, self.random.choice((operand, self.literal(kind)))]
            self.random.shuffle(pair)
            return f"({pair[0]} {operator} {pair[1]})"
        return f"({self._two(kind, scope, depth, f' {operator} ')})"

    def _shift(self, kind: Type, scope: Scope, depth: int) -> str:
        operator = self.random.choice(("<<", ">>"))
        by = str(self.random.randrange(kind.width)) if self.random.random() < 0.5 else self.expression(Type(8), scope, DEPTH)
        return f"({self.expression(kind, scope, depth + 1)} {operator} {by})"

    def _cast(self, kind: Type, scope: Scope, depth: int) -> str:
        if kind == Type(1) and self.random.random() < 0.5:
            return f"((bit<1>) ({self.condition(scope, depth + 1)}))"
        if kind.signed or (self.random.random() < 0.3 and kind.width > 1):
            other = Type(kind.width, not kind.signed)
        else:
            other = Type(self.random.choice(WIDTHS))
        return f"(({kind}) {self.expression(other, scope, depth + 1)})"

    def _slice(self, kind: Type, scope: Scope, depth: int) -> str:
        wide = [(name, other) for name, other in scope.readable if other.width >= kind.width and not other.signed]
        if not wide:
            return self.expression(kind, scope, depth + 1)
        name, other = self.random.choice(wide)
        low = self.random.randint(0, other.width - kind.width)
        return f"{name}[{low + kind.width - 1}:{low}]"

    def _concatenation(self, kind: Type, scope: Scope, depth: int) -> str:
        left = self.random.randrange(1, kind.width)
        first, second = Type(left), Type(kind.width - left)
        return f"({self.expression(first, scope, depth + 1)} ++ {self.expression(second, scope, depth + 1)})"

    def condition(self, scope: Scope, depth: int = 0) -> str:
        choice = self.random.random()
        if depth < DEPTH and choice < 0.27:
            parts = [self.condition(scope, depth + 1) for _ in range(3)]
            if choice < 0.07:
                return f"({parts[0]} ? {parts[1]} : {parts[2]})"
            if self.random.random() < 0.15:
                parts[self.random.randrange(2)] = self.random.choice(("true", "false"))
            return f"({parts[0]} {self.random.choice(('&&', '||', '==', '!='))} {parts[1]})"
        if choice < 0.3:
            return f"(!{self.condition(scope, depth + 1)})" if depth < DEPTH else self.random.choice(("true", "false"))
        if choice < 0.45:
            return f"h.{self.random.choice([*self._optional])}.isValid()"
        operator = self.random.choice(("==", "!=", "<", "<=", ">", ">="))
        # One side is not constant.
        name, kind = self.random.choice(scope.readable)
        return f"({name} {operator} {self.expression(kind, scope, depth + 1)})"

    # Statements

    def block(self, scope: Scope, depth: int, ingress: bool) -> str:
        statements = (self.statement(scope, depth + 1, ingress) for _ in range(self.random.randint(1, 3)))
        return "{ " + " ".join(statements) + " }"

    def statement(self, scope: Scope, depth: int, ingress: bool) -> str:
        forms = [self._assignment] * 4 + [self._slice_assignment, self._hash]
        if depth < 3:
            forms += [self._if, self._if, self._guarded, self._switch, self._loop, self._local]
        if ingress:
            forms += [self._apply, self._apply, self._leave, self._count]
            # Header validity changes only where no guard surrounds the statement.
            forms += [self._validity] if depth == 0 else []
        return self.random.choice(forms)(scope, depth, ingress)

    def _assignment(self, scope: Scope, _depth: int, _ingress: bool) -> str:
        name, kind = self.random.choice(scope.writable)
        return f"{name} = {self.expression(kind, scope)};"

    def _slice_assignment(self, scope: Scope, depth: int, ingress: bool) -> str:
        unsigned = [each for each in scope.writable if not each[1].signed]
        if not unsigned:
            return self._assignment(scope, depth, ingress)
        name, kind = self.random.choice(unsigned)
        low = self.random.randrange(kind.width)
        high = self.random.randrange(low, kind.width)
        return f"{name}[{high}:{low}] = {self.expression(Type(high - low + 1), scope)};"

    def _hash(self, scope: Scope, depth: int, ingress: bool) -> str:
        targets = [name for name, kind in scope.writable if not kind.signed and 16 <= kind.width <= 64]
        if not targets:
            return self._assignment(scope, depth, ingress)
        data = [self.expression(Type(8 * self.random.randint(1, 9)), scope, 2) for _ in range(self.random.randint(1, 3))]
        target, algorithm = self.random.choice(targets), self.random.choice(HASHES)
        base, listed = self.random.randrange(9), ", ".join(data)
        return f"hash({target}, HashAlgorithm.{algorithm}, 16w{base}, {{ {listed} }}, 32w65536);"

    def _if(self, scope: Scope, depth: int, ingress: bool) -> str:
        other = f" else {self.block(scope, depth, ingress)}" if self.random.random() < 0.5 else ""
        return f"if ({self.condition(scope)}) {self.block(scope, depth, ingress)}{other}"

    def _guarded(self, scope: Scope, depth: int, ingress: bool) -> str:
        header = self.random.choice([*self._optional])
        return f"if (h.{header}.isValid()) {self.block(scope.plus(*self._optional[header]), depth, ingress)}"

    def _switch(self, scope: Scope, depth: int, ingress: bool) -> str:
        number = self._next_table(lambda n: n % 2 == 1) if ingress and self.random.random() < 0.5 else None
        if number is not None:
            table, actions = self.tables[number]
            label, on = self.random.choice(actions), f"{table}.apply().action_run"
        else:
            kind = Type(self.random.choice((3, 8, 16)))
            label, on = self.literal(kind), self._variable_of(kind, scope)
        return f"switch ({on}) {{ {label}: {self.block(scope, depth, ingress)} default: {self.block(scope, depth, ingress)} }}"

    def _variable_of(self, kind: Type, scope: Scope) -> str:
        wide = [name for name, other in scope.readable if other.width >= kind.width and not other.signed]
        return f"{self.random.choice(wide)}[{kind.width - 1}:0]"

    def _loop(self, scope: Scope, depth: int, ingress: bool) -> str:
        if not self._has_loops:
            return self._assignment(scope, depth, ingress)
        name = self._name("i")
        inner = scope.plus((name, Type(8)), constant=True)
        # Compilers unroll loops, so they are short.
        body = " ".join(self._assignment(inner, depth, ingress) for _ in range(self.random.randint(1, 2)))
        leave = ""
        if self.random.random() < 0.5:
            leave = f"if ({self.condition(inner)}) {{ {self.random.choice(('break', 'continue'))}; }} "
        return f"for (bit<8> {name} in 8w0..8w{self.random.randint(1, 3)}) {{ {leave}{body} }}"

    def _local(self, scope: Scope, depth: int, ingress: bool) -> str:
        name, kind = self._name("v"), self._type()
        inner = scope.plus((name, kind))
        return f"{{ {kind} {name} = {self.expression(kind, scope)}; {self.block(inner, depth, ingress)} }}"

    def _apply(self, scope: Scope, depth: int, ingress: bool) -> str:
        is_tested = depth < 3 and self.random.random() < 0.6
        number = self._next_table(lambda n: not is_tested or n % 2 == 0)
        if number is None:
            return self._assignment(scope, depth, ingress)
        table, _ = self.tables[number]
        if not is_tested:
            return f"{table}.apply();"
        outcome = f"{table}.apply().{self.random.choice(('hit', 'miss'))}"
        other = self.random.choice(("true", "false", self.condition(scope, 2)))
        operator = self.random.choice(("&&", "||", "=="))
        forms = (outcome, outcome, f"!{outcome}", f"{other} {operator} {outcome}", f"{outcome} {operator} {other}")
        return f"if ({self.random.choice((*forms, f'{other} ? {outcome} : false'))}) {self.block(scope, depth, ingress)}"

    def _next_table(self, usable: Callable[[int], bool]) -> int | None:
        """Return the number of a table that may be applied, or None if all have been."""
        numbers = [n for n in (range(len(self.tables)) if self._has_repeats else self._unused) if usable(n)]
        if not numbers:
            return None
        number = self.random.choice(numbers)
        if not self._has_repeats:
            self._unused.remove(number)
        return number

    def _leave(self, scope: Scope, _depth: int, _ingress: bool) -> str:
        return f"if ({self.condition(scope)}) {{ {self.random.choice(('exit', 'return', 'mark_to_drop(std)'))}; }}"

    def _count(self, scope: Scope, _depth: int, _ingress: bool) -> str:
        return f"count.count((bit<32>) {self._variable_of(Type(4), Scope([e for e in scope.readable if e[1].width >= 4]))});"

    def _validity(self, scope: Scope, _depth: int, _ingress: bool) -> str:
        header = self.random.choice([*self._optional])
        if self.random.random() < 0.4:
            return f"h.{header}.setInvalid();"
        fields = {"a": " h.a.next = 5;"}.get(header, f" h.{header}.last = 1;" if header.startswith("s[") else "")
        values = " ".join(f"{name} = {self.expression(kind, scope)};" for name, kind in self._optional[header])
        return f"if (!h.{header}.isValid()) {{ h.{header}.setValid();{fields} {values} }}"

    # Tables

    def _table(self, number: int, scope: Scope) -> None:
        actions = []
        for index in range(self.random.randint(1, 3)):
            name = f"act_{number}_{index}"
            params = [(self._name("p"), Type(self.random.choice(WIDTHS))) for _ in range(self.random.randint(0, 3))]
            inner = scope.plus(*params, constant=True)
            body = " ".join(self._assignment(inner, 3, True) for _ in range(self.random.randint(1, 3)))
            declared = ", ".join(f"{kind} {param}" for param, kind in params)
            self._declarations.append(f"action {name}({declared}) {{ {body} }}")
            actions.append((name, params))
        key = self._key(scope)
        default = self._call(*self.random.choice(actions))
        text = " ".join(f"{name} : {kind};" for name, _, kind in key)
        entries = self._entries(key, actions) if self.random.random() < 0.5 else ""
        listed = " ".join(f"{name};" for name, _ in actions)
        self._declarations.append(
            f"table t_{number} {{ key = {{ {text} }} actions = {{ {listed} }} "
            f"{self.random.choice(('const ', ''))}default_action = {default}; {entries}size = 64; }}"
        )
        self.tables.append((f"t_{number}", [name for name, _ in actions]))

    def _key(self, scope: Scope) -> list[tuple[str, Type, str]]:
        usable = [each for each in scope.readable if not each[1].signed]
        chosen = self.random.sample(usable, min(len(usable), self.random.randint(1, 3)))
        key = [(name, kind, self.random.choice(MATCH_KINDS)) for name, kind in chosen]
        seen = False
        for index, (name, kind, match) in enumerate(key):
            # At most one longest prefix; BMv2 refuses valid prefixes of fields that are not whole bytes.
            if match == "lpm" and (seen or kind.width % 8):
                key[index] = (name, kind, "exact")
            seen |= key[index][2] == "lpm"
        return key

    def _entries(self, key: list[tuple[str, Type, str]], actions: list[tuple[str, list[tuple[str, Type]]]]) -> str:
        lines = {}
        for _ in range(self.random.randint(1, 4)):
            keys = ", ".join(self._match(kind, match) for _, kind, match in key)
            lines[keys] = f"({keys}) : {self._call(*self.random.choice(actions))};"
        return f"const entries = {{ {' '.join(lines.values())} }} "

    def _match(self, kind: Type, match: str) -> str:
        value = self.random.getrandbits(kind.width)
        full = (1 << kind.width) - 1
        match match:
            case "ternary":
                mask = self.random.choice((full, self.random.getrandbits(kind.width)))
                return f"{value & mask} &&& {mask}" if mask else "_"
            case "lpm":
                mask = full ^ (1 << self.random.randrange(kind.width)) - 1
                return f"{value & mask} &&& {mask}"
            case "range":
                low, high = sorted((value, self.random.getrandbits(kind.width)))
                return f"{low} .. {high}"
            case "optional" if self.random.random() < 0.5:
                return "_"
            case _:
                return str(value)

    def _call(self, name: str, params: list[tuple[str, Type]]) -> str:
        return f"{name}({', '.join(self.literal(kind) for _, kind in params)})"


def _header(name: str, fields: list[tuple[str, Type]]) -> str:
    return f"header {name} {{ {' '.join(f'{kind} {field};' for field, kind in fields)} }}"


def generate(seed: int) -> Program:
    """Return the program of a seed."""
    return Generator(seed).program()
