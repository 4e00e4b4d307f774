# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/rust_cycles.py`: it finds cycles between sibling modules and accepts those between parent and child."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rust_cycles


def found(folder: Path, sources: dict[str, str]) -> list[list[rust_cycles.Module]]:
    for name, text in sources.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    graphs = rust_cycles.siblings(rust_cycles.dependencies(rust_cycles.modules(folder)))
    return [cycle for graph in graphs.values() for cycle in rust_cycles.cycles(graph)]


@pytest.mark.parametrize(
    "sources",
    [
        {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B;", "b.rs": "fn f() { crate::a::g() }"},
        {"lib.rs": "mod a; mod b;", "a.rs": "use super::b;", "b.rs": "use crate::{a::{A, C}, d};"},
        {"lib.rs": "mod a; mod b;", "a/mod.rs": "mod x;", "a/x.rs": "use crate::b::B;", "b.rs": "use crate::a::x::X;"},
        {"lib.rs": "mod a; mod b;", "a/mod.rs": "mod x; pub use x::X;", "a/x.rs": "use crate::b::B;", "b.rs": "use crate::a::X;"},
        {"a/b/mod.rs": "mod d;", "a/b/d.rs": "use super::super::c::C;", "a/c.rs": "use crate::a::b::B;"},
    ],
)
def test_cycle_between_siblings_is_found(tmp_path: Path, sources: dict[str, str]) -> None:
    assert len(found(tmp_path, sources)) == 1


@pytest.mark.parametrize(
    "sources",
    [
        {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B;", "b.rs": "// crate::a\nfn f() {}"},
        {"lib.rs": "mod a; pub use a::A;", "a/mod.rs": "mod x; pub use x::X; pub struct A;", "a/x.rs": "use super::A;"},
        {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B;", "b.rs": "#[cfg(test)]\nmod tests { use crate::a::A; }"},
    ],
)
def test_parent_child_comment_and_test_module_are_accepted(tmp_path: Path, sources: dict[str, str]) -> None:
    assert found(tmp_path, sources) == []


def test_use_tree_is_expanded() -> None:
    assert list(rust_cycles.expand("crate::{a::{A, b::C as D}, e}")) == ["crate::a::A", "crate::a::b::C", "crate::e"]
