# SPDX-License-Identifier: Apache-2.0
"""Find import cycles between the modules of a Python package.

Every import counts: those at the top of a module, those inside functions and those below `if TYPE_CHECKING`.

Example: python tools/import_cycles.py controller/src/frontage controller/records/src/frontage_records
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from rust_cycles import cycles


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of the package in folder `package`, by dotted name."""
    found: dict[str, Path] = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a module of `package` imports; of `from a import b`, `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(part for part in (*parents[: len(parents) - node.level + 1], base) if part)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def dependencies(known: dict[str, Path]) -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    graph: dict[str, set[str]] = {}
    for module, file in known.items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        names = imports(ast.parse(file.read_text(encoding="utf-8")), package)
        # `a.b` is a module, or a name in module `a`.
        targets = {name if name in known else name.rpartition(".")[0] for name in names}
        graph[module] = {target for target in targets if target in known and target != module}
    return graph


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", type=Path, metavar="PACKAGE", help="the folder of a package")
    found = 0
    for package in parser.parse_args().packages:
        for cycle in cycles(dependencies(modules(package))):
            print(f"{package}: modules that import each other: {', '.join(cycle)}: move what they share into a module of its own")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
