# SPDX-License-Identifier: Apache-2.0
"""P4 programs in Python: compile them, fill tables, send packets, inspect traces.

    import softswitch

    pipeline = softswitch.Pipeline(softswitch.compile("router.p4"))
    pipeline.insert("I.routes", {"hdr.ipv4.dst": "10.0.0.0/8"}, "I.set_next_hop", {"next_hop": 1})
    pipeline.tracing = True
    pipeline.send(frame, port=1)
    print(pipeline.take_trace())

A value is a non-negative int, bytes (big-endian), or a string: a number, or an IPv4, IPv6 or Ethernet address.
A match is a value. Other forms are "10.0.0.0/8" or (value, prefix length) for lpm, "value &&& mask" or (value, mask) for
ternary, and "low..high" or (low, high) for range. The validity of a header is matched by True or False. Omitted keys match
anything; exact keys are mandatory. A refused call raises Error, and a program with errors raises CompileError.
"""

from ._softswitch import CompileError, Error, Pipeline, Program, Trace, compile, compile_text, load, load_text, run_stf

__all__ = [
    "CompileError",
    "Error",
    "Pipeline",
    "Program",
    "Trace",
    "compile",
    "compile_text",
    "load",
    "load_text",
    "run_stf",
]
