# SPDX-License-Identifier: Apache-2.0
"""A router, step by step, as in a notebook: paste the parts between the `# %%` lines into cells.

Example: python softswitch/python/examples/router.py
"""

# %% Compile a program. In a notebook, the expression `program` shows its tables.
from pathlib import Path

import softswitch

programs = Path(__file__).parents[2] / "pipeline" / "tests" / "programs"
program = softswitch.compile(programs / "router.p4")
print(program)

# %% Fill its tables, using the program's names.
router = softswitch.Pipeline(program)
router.insert("I.routes", {"hdr.ipv4.dst": "10.0.0.0/8"}, "I.set_next_hop", {"next_hop": 1})
hop: dict[str, int | str] = {"port": 2, "src": "02:00:00:00:00:03", "dst": "02:00:00:00:00:04"}
router.insert("I.next_hops", {"m.next_hop": 1}, "I.forward", hop)

# %% Send a packet to port 1, and print the transmitted packets.
frame = bytes.fromhex(
    "020000000002 020000000001 0800"  # Ethernet
    "4500001a 00010000 4011accd c0000201 0a010203"  # IPv4 to 10.1.2.3
    "68656c6c6f21"
)
router.tracing = True
for port, sent in router.send(frame, port=1, time_ns=1_000_000):
    print(f"port {port}: {sent.hex()}")

# %% Print the trace. In a notebook, the expression `trace` shows foldable packets.
trace = router.take_trace()
print(trace)

# %% Use the trace as data: print the tables that the packet passed.
for step in trace.passes[0]["steps"]:
    if step["step"] == "table":
        print(step["table"], step["key"], "hit" if "hit" in step else "miss", step["action"]["name"])

# %% Print the counter of the route's next hop.
print(router.entries("I.next_hops")[0]["counter"])
