# SPDX-License-Identifier: Apache-2.0
"""Exercises of nsg-ethz/p4-learning with their own solutions, through p4-utils, over Thrift or P4Runtime."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

from outputs import last_line
from rows import Row, RowError
from stage import Stage

FAULTS = re.compile(
    r"^.*(?:Traceback|Invalid (?:match key|runtime data|table operation|PRE|mirroring|meter|counter|register)"
    r"|did not start correctly|CompilationError|\*\*\* Unknown syntax).*$",
    re.MULTILINE,
)
"""Lines of p4-utils and simple_switch_CLI after which an exercise has failed, whatever else works."""

COMMAND_TIMEOUT = 120
"""Seconds for a command in mininet's command line."""

PING = (r"\b3 received, 0% packet loss",)
PINGALL = (r"Results: 0% dropped",)
ROUTES = "sh python routing-controller.py > ctl.log 2>&1"


@dataclass(frozen=True)
class Exercise:
    name: str
    folder: str
    """Below `exercises`."""
    script: str
    """The script that starts the network."""
    commands: tuple[str, ...]
    """Lines for mininet's command line."""
    expected: tuple[str, ...]
    """Patterns, each of which the output must match."""
    check: str

    def __call__(self, stage: Stage) -> None:
        """Run the exercise."""
        solution = stage.folder / "solution"
        if solution.is_dir():
            shutil.copytree(solution, stage.folder, dirs_exist_ok=True)
        with stage.mininet("python", self.script) as net:
            text = net.console.greeting + "".join(net.console.run(command, COMMAND_TIMEOUT) for command in self.commands)
        if fault := fault_in(text, self.expected):
            raise RowError(fault)


def fault_in(text: str, expected: tuple[str, ...]) -> str | None:
    """Return why the output of an exercise does not pass: a fault, or a missing pattern; None if it passes."""
    if fault := FAULTS.search(text):
        return fault[0].strip()
    missing = [pattern for pattern in expected if not re.search(pattern, text)]
    return f"the output lacks `{missing[0]}`: {last_line(text)}" if missing else None


def _pings(name: str, folder: str, *targets: str, script: str = "network.py") -> Exercise:
    # The first ping after the start of a network may be lost, on BMv2, too.
    commands = tuple(f"h1 ping -c {count} {target}" for target in targets for count in (1, 3))
    # Each ping of three packets must be without loss.
    expected = (r"(?s)" + ".*".join(PING * len(targets)),)
    return Exercise(name, folder, script, commands, expected, f"h1 pings {' and '.join(targets)} without loss after the first ping")


def _pingall(name: str, folder: str, script: str = "network.py", before: tuple[str, ...] = ()) -> Exercise:
    # The first ping after the start of a network may be lost, on BMv2, too.
    expected = (rf"(?s)Results: .*{PINGALL[0]}",)
    return Exercise(name, folder, script, (*before, "pingall", "pingall"), expected, "the second `pingall` without loss")


EXERCISES = (
    Exercise(
        "01-Reflector",
        "01-Reflector",
        "network.py",
        ("h1 (sleep 3; echo; sleep 9) | timeout 8 python send_receive.py",),
        (r"packet was reflected",),
        "h1 receives its own packet",
    ),
    _pings("02-Repeater/thrift", "02-Repeater/thrift", "10.0.0.2"),
    _pings("02-Repeater/thrift-table", "02-Repeater/thrift", "10.0.0.2", script="network_table.py"),
    _pings("02-Repeater/p4runtime", "02-Repeater/p4runtime", "10.0.0.2"),
    _pingall("03-L2_Basic_forwarding/thrift", "03-L2_Basic_forwarding/thrift"),
    _pingall("03-L2_Basic_forwarding/p4runtime", "03-L2_Basic_forwarding/p4runtime"),
    *(
        _pingall(f"03-L2_Flooding/{api}-{ports}-ports", f"03-L2_Flooding/{api}", f"network-{ports}-ports.py")
        for api in ("thrift", "p4runtime")
        for ports in ("all", "other")
    ),
    *(
        _pingall(
            f"04-L2_Learning/{api}-{by}",
            f"04-L2_Learning/{api}",
            f"network_{by}.py",
            (f"sh python l2_learning_controller.py s1 {by} > ctl.log 2>&1 &", "sh sleep 8"),
        )
        for api in ("thrift", "p4runtime")
        for by in ("cpu", "digest")
    ),
    *(
        _pings(f"04-MPLS/{api}-{kind}", f"04-MPLS/{api}/mpls_{kind}", "h2", "h3")
        for api in ("thrift", "p4runtime")
        for kind in ("basics", "stacked")
    ),
    _pings("05-ECMP", "05-ECMP", "h2"),
    _pings("05-Flowlet_Switching", "05-Flowlet_Switching", "h2"),
    Exercise(
        "07-Count-Min-Sketch",
        "07-Count-Min-Sketch",
        "network.py",
        (
            "sh python cm-sketch-controller.py --option set_hashes",
            "h1 python send.py --n-pkt 1000 --n-hh 2 --n-sfw 0 --p-hh 1",
            "sh python cm-sketch-controller.py --eps 0.1 --n 1000 --mod 28 --option decode",
        ),
        (r"Packets sent and read by the cms",),
        "the controller decodes the sketch of 1000 packets",
    ),
    _pingall("08-Simple_Routing/thrift", "08-Simple_Routing/thrift", before=(ROUTES,)),
    _pingall("08-Simple_Routing/p4runtime", "08-Simple_Routing/p4runtime", before=(ROUTES,)),
    _pingall("09-Traceroutable", "09-Traceroutable", before=(ROUTES,)),
)

ROWS = [Row(f"p4-learning/{exercise.name}", (f"exercises/{exercise.folder}",), exercise.check, exercise) for exercise in EXERCISES]
