# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that runs finsy's demo networks on softswitch instead of in finsy's container.

finsy's tests check their controllers once, after a short time, which is not enough on a busy machine. So each command is
repeated until its output is as expected. The result of a ping without an answer does not depend on the controller, so the
plugin waits until the controller has started, and until it has reacted to the ping.
"""

import asyncio
from pathlib import Path

import grpc
from finsy.proto import p4r, p4r_grpc
from finsy.test import demonet

ATTEMPTS = 20
# Timeout in seconds for a controller to start and react. Just importing finsy takes long on a busy machine.
TEST_TIMEOUT = 120
UNANSWERED = "100% packet loss"
# The first of the switches that `demonet_switch` makes.
SWITCH = "127.0.0.1:50001"

demonet._IMAGE_P4SWITCH_PY = Path(__file__).parent / "demonet_switch.py"
send = demonet.DemoNet.send


async def send_until_expected(self: demonet.DemoNet, cmdline: str, *, expect: str = "") -> str:
    before = await written(but=[]) if expect == UNANSWERED else []
    for _ in range(ATTEMPTS):
        result = await send(self, cmdline)
        if not expect:
            return result
        await asyncio.sleep(1)  # for the controller to act upon the packets
        if expect in result:
            if expect == UNANSWERED:
                await written(but=before)
            return result
    raise ValueError(f"expected {expect!r}, got {result!r}")


async def written(but: list[p4r.Entity]) -> list[p4r.Entity]:
    """Return the switch's entries and sessions as soon as they differ from these."""
    request = p4r.ReadRequest(device_id=1)
    request.entities.add().table_entry.SetInParent()
    request.entities.add().packet_replication_engine_entry.SetInParent()
    async with grpc.aio.insecure_channel(SWITCH) as channel:
        read = p4r_grpc.P4RuntimeStub(channel).Read
        for _ in range(TEST_TIMEOUT):
            try:
                found = [entity async for response in read(request, wait_for_ready=True) for entity in response.entities]
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.FAILED_PRECONDITION:  # no program yet
                    raise
                found = []
            if found != but:
                return found
            await asyncio.sleep(1)
    raise ValueError(f"the controller has written nothing to {SWITCH} besides {but}")


demonet.DemoNet.send = send_until_expected
