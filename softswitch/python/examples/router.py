"""A router, step by step, as in a notebook: paste the parts between the lines of `# %%` into cells.

Example: python softswitch/python/examples/router.py
"""

# %% Compile a program. In a notebook, `program` alone shows its tables.
from pathlib import Path

import softswitch

programs = Path(__file__).parents[2] / "pipeline" / "tests" / "programs"
program = softswitch.compile(programs / "router.p4")
print(program)

# %% Fill its tables by the program's names.
router = softswitch.Pipeline(program)
router.insert("I.routes", {"hdr.ipv4.dst": "10.0.0.0/8"}, "I.set_next_hop", {"next_hop": 1})
hop: dict[str, int | str] = {"port": 2, "src": "02:00:00:00:00:03", "dst": "02:00:00:00:00:04"}
router.insert("I.next_hops", {"m.next_hop": 1}, "I.forward", hop)

# %% Push a packet in by port 1, and see what comes out.
frame = bytes.fromhex(
    "020000000002 020000000001 0800"  # Ethernet
    "4500001a 00010000 4011accd c0000201 0a010203"  # IPv4 to 10.1.2.3
    "68656c6c6f21"
)
router.tracing = True
for port, sent in router.send(frame, port=1, time_ns=1_000_000):
    print(f"port {port}: {sent.hex()}")

# %% What it went through. In a notebook, `trace` alone folds packet by packet.
trace = router.take_trace()
print(trace)

# %% The same as data: every table that the packet met.
for step in trace.passes[0]["steps"]:
    if step["step"] == "table":
        print(step["table"], step["key"], "hit" if "hit" in step else "miss", step["action"]["name"])

# %% The counter of the route's next hop.
print(router.entries("I.next_hops")[0]["counter"])
