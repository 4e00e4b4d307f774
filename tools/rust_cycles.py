# SPDX-License-Identifier: Apache-2.0
"""Find import cycles between the modules of each Rust crate.

Every source file is a module. A module depends on each module that its `use` declarations and paths name. The modules
of each folder must not depend on each other in a cycle. Here, a module stands for all modules below it, because
re-exports hide which of them is meant. A parent and its descendants may name each other.

Example: python tools/rust_cycles.py softswitch/pipeline host-agents/quic
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
Module = tuple[str, ...]
Node = TypeVar("Node", str, Module)

_IGNORED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")


def modules(source: Path) -> dict[Module, Path]:
    """Return the modules below a `src` folder, by path from the crate's root. Binaries are roots of their own and are left out."""
    found: dict[Module, Path] = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[0] in {"bin", "main"}:
            continue
        if parts[-1] in {"mod", "lib"}:
            parts = parts[:-1]
        found[parts] = file
    return found


def expand(tree: str) -> Iterator[str]:
    """Yield the paths of a `use` tree: `a::{b, c::d}` gives `a::b` and `a::c::d`."""
    tree = re.sub(r"\s+", " ", tree.strip())
    brace = tree.find("{")
    if brace < 0:
        yield tree.split(" as ")[0].strip()
        return
    depth, start = 0, brace + 1
    for i, letter in enumerate(tree[brace:], brace):
        depth += (letter == "{") - (letter == "}")
        if (letter == "," and depth == 1) or depth == 0:
            if part := tree[start:i].strip():
                yield from (tree[:brace] + path for path in expand(part))
            start = i + 1
        if depth == 0:
            return


def resolve(path: str, module: Module, known: dict[Module, Path]) -> Module | None:
    """Return the module that a path names from within `module`, or None if it is not of this crate."""
    head, *rest = [part.strip() for part in path.split("::")]
    if head == "crate":
        base: Module = ()
    elif head in {"self", "super"}:
        base = module if head == "self" else module[:-1]
        while rest and rest[0] == "super":
            base, rest = base[:-1], rest[1:]
    elif (*module, head) in known:
        base, rest = module, [head, *rest]
    else:
        return None
    for length in range(len(rest), -1, -1):
        if (candidate := (*base, *rest[:length])) in known:
            return candidate
    return None


def dependencies(known: dict[Module, Path]) -> set[tuple[Module, Module]]:
    """Return the pairs of a module and a module that it names."""
    pairs = set()
    for module, file in known.items():
        text = _IGNORED.sub("", file.read_text(encoding="utf-8"))
        text = text.split("#[cfg(test)]\nmod tests {")[0]
        paths = [path for tree in _USE.findall(text) for path in expand(tree)] + _PATH.findall(_USE.sub("", text))
        pairs |= {(module, found) for path in paths if (found := resolve(path, module, known)) is not None}
    return pairs


def siblings(pairs: set[tuple[Module, Module]]) -> dict[Module, dict[Module, set[Module]]]:
    """Return the dependencies between the children of each module; those below a child count as the child's."""
    graphs: dict[Module, dict[Module, set[Module]]] = {}
    for module, other in pairs:
        shared = next((i for i, (a, b) in enumerate(zip(module, other, strict=False)) if a != b), None)
        if shared is not None:
            graph = graphs.setdefault(module[:shared], {})
            graph.setdefault(module[: shared + 1], set()).add(other[: shared + 1])
            graph.setdefault(other[: shared + 1], set())
    return graphs


def cycles(graph: dict[Node, set[Node]]) -> list[list[Node]]:
    """Return the strongly connected components of more than one module (Tarjan), each sorted."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    found: list[list[Node]] = []

    def visit(node: Node) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crates", nargs="*", type=Path, help="folders of crates; every crate of the repository if absent")
    crates = parser.parse_args().crates or sorted(
        file.parent for file in ROOT.rglob("Cargo.toml") if "target" not in file.parts and (file.parent / "src").is_dir()
    )
    count = 0
    for crate in crates:
        graphs = siblings(dependencies(modules(crate / "src")))
        for cycle in (cycle for _, graph in sorted(graphs.items()) for cycle in cycles(graph)):
            count += 1
            names = ", ".join("::".join(("crate", *module)) for module in cycle)
            print(f"{crate}: modules that import each other: {names}: move what they share into a module of its own")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
