# SPDX-License-Identifier: Apache-2.0
"""A mininet switch that is softswitch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mininet.log import info
from mininet.node import Switch

from .links import SoftLink
from .processes import Process
from .programs import BY_ADDRESS, compiled, executable

FIRST_GRPC_PORT = 50050
"""The P4Runtime port of a switch is this number plus its device id."""


class SwitchError(RuntimeError):
    """A switch that does not start."""


class SoftSwitch(Switch):  # type: ignore[misc]
    """A switch that runs a P4 program.

    Parameters, besides those of mininet's `Switch`:

    - `program`: a P4 program, or the BMv2 JSON of one. Without it, frames go to the port that the last byte of their
      destination address names. `None`: no program; a controller sets it.
    - `device_id`: P4Runtime's; default: the number in the switch's name.
    - `grpc_port`: TCP port of P4Runtime; default: 50050 plus the device id.
    - `thrift_port`: TCP port of BMv2's Thrift services, for `simple_switch_CLI`; default: none.
    - `cpu_port`: number of the port to the controller; default: none.
    - `log`: file for the log of packets; default: no log of packets.
    - `coverage`: LCOV file that gets counts of the parts of the program that packets reached, when the switch stops. Switches
      can share one. Default: no counts.
    - `options`: further options of softswitch, as one string or a sequence of words.

    Ports have the numbers of the interfaces: `s1-eth2` is port 2. `SoftLink` gives them rate, delay and loss.
    """

    shapes_links = True
    """`SoftLink` leaves the direction from this switch to it."""

    def __init__(
        self,
        name: str,
        program: str | Path | None = BY_ADDRESS,
        device_id: int | None = None,
        grpc_port: int | None = None,
        thrift_port: int | None = None,
        cpu_port: int | None = None,
        log: str | Path | None = None,
        coverage: str | Path | None = None,
        options: str | Sequence[str] = (),
        **params: Any,
    ) -> None:
        super().__init__(name, **params)
        digits = re.findall(r"\d+", name)
        self.device_id = int(digits[0]) if device_id is None and digits else device_id or 0
        self.grpc_port = FIRST_GRPC_PORT + self.device_id if grpc_port is None else grpc_port
        self.thrift_port, self.cpu_port = thrift_port, cpu_port
        self._program, self._log, self._coverage = program, log, coverage
        self._options = options.split() if isinstance(options, str) else list(options)
        self._process: Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def command(self, folder: Path) -> list[str]:
        """Return the command line; `folder` receives the compiled program."""
        words = [executable()]
        words += ["--no-p4"] if self._program is None else [str(compiled(self._program, folder))]
        words += ["--device-id", str(self.device_id)]
        for port, interface in sorted(self.intfs.items()):
            if interface.name == "lo":
                continue
            words += ["-i", f"{port}@{interface.name}"]
            if isinstance(interface.link, SoftLink) and (link := interface.link.settings_of(interface).option()):
                words += ["--link", f"{port}:{link}"]
        if self._log is not None:
            words += ["--log-file", str(self._log), "--log-flush"]
        if self._coverage is not None:
            words += ["--coverage", str(self._coverage)]
        if self.thrift_port is not None:
            words += ["--thrift-port", str(self.thrift_port)]
        words += [*self._options, "--", "--grpc-server-addr", f"127.0.0.1:{self.grpc_port}"]
        return [*words, "--cpu-port", str(self.cpu_port)] if self.cpu_port is not None else words

    def start(self, _controllers: Sequence[Any]) -> None:
        """Start the switch, and wait until it is ready; mininet calls this.

        Raises SwitchError if it does not start.
        """
        self._folder = tempfile.TemporaryDirectory(prefix=f"softswitch-{self.name}-")
        folder = Path(self._folder.name)
        for interface in self.intfNames():
            if interface != "lo":
                # The kernel must not send frames of its own into the network.
                self.cmd(f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1")
        info(f"({self.name}: P4Runtime at port {self.grpc_port}) ")
        try:
            self._process = Process(self.command(folder), folder / "output.txt")
        except RuntimeError as error:
            raise SwitchError(f"{self.name}: {error}") from None

    def connected(self) -> bool:
        """Return whether the switch runs; mininet calls this."""
        return self._process is not None and self._process.is_running()

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803
        """Stop the switch; mininet calls this."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        super().stop(deleteIntfs)
