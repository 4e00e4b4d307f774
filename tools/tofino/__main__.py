# SPDX-License-Identifier: Apache-2.0
"""Write what is known about the profiles for Tofino to docs/tofino.md, and to JSON files in p4src/tna.

The longest chains of dependent steps come from softswitch-p4c: target/release/softswitch-p4c, or SOFTSWITCH_P4C.
The placement comes from P4C_TOFINO, a command that runs the open back end for Tofino. Without it, the placement stays.
The recirculation comes from bench/passes.py, which needs frontage-bench: target/release/frontage-bench, or FRONTAGE_BENCH.

Example: PYTHONPATH=tools P4C_TOFINO=p4c-barefoot python -m tofino
"""

from __future__ import annotations

import sys

from tofino import backend, chains, placement, recirculation


def main() -> int:
    if len(sys.argv) > 1:
        print((__doc__ or "").strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    chains.write()
    recirculation.write()
    command = backend.compiler()
    if command is None:
        print("placement skipped: set P4C_TOFINO to a command that runs the open back end for Tofino")
    else:
        placement.write(command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
