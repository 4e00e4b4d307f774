# SPDX-License-Identifier: Apache-2.0
"""Switches, hosts and links for mininet, with softswitch.

    from mininet.net import Mininet
    from mininet.topo import SingleSwitchTopo
    from softswitch.mininet import SoftHost, SoftLink, SoftSwitch

    net = Mininet(SingleSwitchTopo(3), switch=SoftSwitch, host=SoftHost, link=SoftLink, controller=None, autoSetMacs=True,
                  autoStaticArp=True)
    net.start()
    net.pingAll()

`SoftSwitch` runs a P4 program; without one, it forwards each frame to the port that the last byte of its destination
address names. `SoftLink` limits rate, delay and loss without netem. `mn --custom $(python3 -m softswitch.mininet)` knows
all three as "soft". mininet itself is not on PyPI: install the package of your distribution.
"""

from .hosts import SoftHost
from .links import LinkError, SoftLink
from .programs import ProgramError
from .switches import SoftSwitch, SwitchError

__all__ = ["LinkError", "ProgramError", "SoftHost", "SoftLink", "SoftSwitch", "SwitchError"]
