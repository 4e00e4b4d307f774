# SPDX-License-Identifier: Apache-2.0
"""Write the reference of tables, actions and counters (docs/tables.md) from a P4Info file.

Example: tools/table_reference.py build/p4/frontage.p4info.txtpb > docs/tables.md
"""

import argparse
import re
import sys
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

P4SRC = Path(__file__).resolve().parent.parent / "p4src"
NUMBERED = re.compile(r"#define (?:DROP|OUTCOME)_(\w+) (\d+) // (.+)")


def match_kind(field: p4i.MatchField) -> str:
    kind: str = p4i.MatchField.MatchType.Name(field.match_type)
    return kind.lower()


def tables(info: p4i.P4Info) -> list[str]:
    actions = {action.preamble.id: action for action in info.actions}
    counters = {counter.direct_table_id for counter in info.direct_counters}
    lines = ["| table | key | actions | entries |", "|---|---|---|---|"]
    for table in info.tables:
        key = "<br>".join(f"{f.name}: {match_kind(f)} {f.bitwidth}" for f in table.match_fields) or "(none: the default action)"
        calls = []
        for ref in table.action_refs:
            action = actions[ref.id]
            params = ", ".join(f"{p.name} {p.bitwidth}" for p in action.params)
            calls.append(f"`{action.preamble.name.rsplit('.', 1)[-1]}({params})`")
        counted = "<br>packets and bytes counted" if table.preamble.id in counters else ""
        lines.append(f"| `{table.preamble.name}` | {key} | {'<br>'.join(calls)} | {table.size}{counted} |")
    return lines


def arrays(info: p4i.P4Info) -> list[str]:
    lines = ["| name | kind | cells |", "|---|---|---|"]
    for counter in info.counters:
        unit = p4i.CounterSpec.Unit.Name(counter.spec.unit).lower()
        lines.append(f"| `{counter.preamble.name}` | counter of {unit} | {counter.size} |")
    for register in info.registers:
        lines.append(
            f"| `{register.preamble.name}` | register of {register.type_spec.bitstring.bit.bitwidth} bits | {register.size} |"
        )
    return lines


def numbered(source: str) -> list[str]:
    lines = ["| number | name | meaning |", "|---|---|---|"]
    for name, number, text in NUMBERED.findall((P4SRC / "include" / source).read_text()):
        if name not in ("REASONS",):
            lines.append(f"| {number} | `{name}` | {text} |")
    return lines


def reference(info: p4i.P4Info) -> str:
    parts = [
        "# Tables, counters and registers",
        "Generated from the program's P4Info by `make docs`; do not edit. Widths are in bits.",
        "## Tables",
        *tables(info),
        "## Counters and registers",
        *arrays(info),
        "## Drop reasons: `FrontageIngress.drops`",
        *numbered("drop.p4"),
        "## Outcomes: `FrontageIngress.outcomes`",
        *numbered("outcome.p4"),
    ]
    text = ""
    for part in parts:
        text += part + "\n" if part.startswith("|") else f"\n{part}\n\n"
    return text.lstrip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("p4info", type=Path, help="P4Info in protobuf text format")
    args = parser.parse_args()
    info = p4i.P4Info()
    text_format.Parse(args.p4info.read_text(), info)
    sys.stdout.write(reference(info))


if __name__ == "__main__":
    main()
