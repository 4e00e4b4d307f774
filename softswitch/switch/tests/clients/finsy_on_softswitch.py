"""A pytest plugin: finsy's demo networks run here, on softswitch, and not in its container.

finsy's tests give their controllers a moment and look once; on a busy machine that is not enough, so that each command is
repeated until its output is as expected.
"""

import asyncio
from pathlib import Path

from finsy.test import demonet

ATTEMPTS = 20

demonet._IMAGE_P4SWITCH_PY = Path(__file__).parent / "demonet_switch.py"
send = demonet.DemoNet.send


async def send_until_expected(self: demonet.DemoNet, cmdline: str, *, expect: str = "") -> str:
    for _ in range(ATTEMPTS):
        result = await send(self, cmdline)
        if not expect:
            return result
        await asyncio.sleep(1)  # for the controller to act upon the packets
        if expect in result:
            return result
    raise ValueError(f"expected {expect!r}, got {result!r}")


demonet.DemoNet.send = send_until_expected
