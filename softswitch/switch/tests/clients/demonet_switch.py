# SPDX-License-Identifier: Apache-2.0
"""Mininet's switches for finsy's demo networks: softswitch, under the names of the switches that they ask for."""

import os

from mininet.node import Switch

FIRST_PORT = 50001


class Softswitch(Switch):
    """One softswitch with all its interfaces, as port 1 and on; P4Runtime at 50001, 50002, ..."""

    started = 0

    def __init__(self, name, config, **kwargs):
        super().__init__(name, **kwargs)
        self.cpu_port = config.get("cpu_port") or 255
        self.grpc_port = FIRST_PORT + Softswitch.started
        Softswitch.started += 1

    def start(self, _controllers):
        names = [name for name in self.intfNames() if name != "lo"]
        ports = " ".join(f"-i {port}@{name}" for port, name in enumerate(names, 1))
        log = f"{os.environ['SOFTSWITCH_LOGS']}/{self.name}.log"
        # One of an earlier network says that it is ready, too.
        self.cmd(f"rm -f {log}")
        self.cmd(
            f"{os.environ['SOFTSWITCH']} --no-p4 --device-id 1 {ports} -- --cpu-port {self.cpu_port}"
            f" --grpc-server-addr 127.0.0.1:{self.grpc_port} >{log} 2>&1 &"
        )
        self.cmd(f"until grep -qs ready {log}; do sleep 0.01; done")

    def stop(self, deleteIntfs=True):  # noqa: N803 (Mininet's name)
        self.cmd("kill %1; wait")
        super().stop(deleteIntfs)


switches = {"bmv2": Softswitch, "stratum": Softswitch}
