# SPDX-License-Identifier: Apache-2.0
"""Sets the programs of a switch over BfRuntime. Runs with the Python of the PTF tests; not for direct use.

Takes the address of the server, the number of pipes, the chip, and the folder of each program. Program I of N has the
pipes I, I + N, I + 2N and so on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bfrt_grpc.bfruntime_pb2 as bfruntime_pb2
import bfrt_grpc.client as client

CLIENT = 99
"""The client id, which no test uses."""


def config(folder: Path, chip: str, pipes: list[int]) -> client.ForwardingConfig:
    """Return the config of a compiled program for these pipes."""
    profiles = [
        client.ProfileInfo(file.parent.name, str(file.parent / "context.json"), str(file), pipes)
        for file in sorted(folder.glob(f"*/{chip}.bin"))
    ]
    return client.ForwardingConfig(folder.name, str(folder / "bf-rt.json"), profiles)


def main(address: str, pipes: str, chip: str, *folders: str) -> None:
    numbers = range(int(pipes))
    configs = [config(Path(folder), chip, list(numbers[at :: len(folders)])) for at, folder in enumerate(folders)]
    interface = client.ClientInterface(address, client_id=CLIENT, device_id=0)
    action = bfruntime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_WARM_INIT_BEGIN_AND_END
    if not interface.send_set_forwarding_pipeline_config_request(action, "", configs):
        sys.exit("the switch did not load the programs")


if __name__ == "__main__":
    main(*sys.argv[1:])
