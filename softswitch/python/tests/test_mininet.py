# SPDX-License-Identifier: Apache-2.0
"""softswitch.mininet with the real mininet, in a network namespace of its own. `ALLOW_SKIPS=1` skips it without root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0 and bool(os.environ.get("ALLOW_SKIPS")), reason="mininet needs root")

NET = """
import re
from mininet.net import Mininet
from mininet.topo import LinearTopo, SingleSwitchTopo, Topo
from softswitch.mininet import LinkError, SoftHost, SoftLink, SoftSwitch, SwitchError

def network(topology, **options):
    chosen = dict(switch=SoftSwitch, host=SoftHost, link=SoftLink, controller=None, autoSetMacs=True, autoStaticArp=True)
    return Mininet(topology, **(chosen | options))

def times(net, count=5, size=56):
    output = net.get("h1").cmd(f"ping -c {count} -i 0.2 -W 2 -s {size} 10.0.0.2")
    return [float(time) for time in re.findall(r"time=([\\d.]+) ms", output)]
"""


def isolated(*command: str, folder: Path) -> str:
    """Run a command in new namespaces; return its output. Fails if the command does.

    After a failure, mininet ends programs by name and removes files from /tmp: here, it finds only its own.
    """
    inner = 'mount -t tmpfs tmpfs /tmp && mount -t sysfs sysfs /sys && ip link set lo up && exec "$@"'
    words = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--mount", "sh", "-c", inner, "sh", *command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def run(tmp_path: Path, script: str) -> str:
    return isolated(sys.executable, "-c", NET + script, folder=tmp_path)


def test_hosts_reach_each_other_and_nothing_remains(tmp_path: Path) -> None:
    script = """
import subprocess
net = network(SingleSwitchTopo(3))
net.start()
assert net.get("s1").connected()
assert net.pingAll() == 0
net.stop()
assert not net.get("s1").connected()
print("left:", subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout.split()[0::4])
"""
    output = run(tmp_path, script)
    assert "0% dropped (6/6 received)" in output
    assert "eth" not in output.split("left:")[1]


def test_delay_and_rate_apply_to_each_link_and_direction(tmp_path: Path) -> None:
    script = """
net = network(SingleSwitchTopo(2, lopts={"bw": 1, "delay": "10ms"}))
net.start()
print("small", *times(net))
print("large", *times(net, size=1472))
net.stop()
"""
    lines = [line.split() for line in run(tmp_path, script).splitlines()]
    found = {line[0]: [float(time) for time in line[1:]] for line in lines if line and line[0] in ("small", "large")}
    # Two links, both ways: 40 ms of delay, and 8 or 12.1 ms for each frame of 1514 bytes.
    assert len(found["small"]) == len(found["large"]) == 5
    assert 40 <= min(found["small"]) < 60
    assert 40 + 4 * 12.112 <= min(found["large"]) < 120


def test_loss_of_one_direction_only(tmp_path: Path) -> None:
    script = """
class OneWay(Topo):
    def build(self, side):
        self.addSwitch("s1")
        for number in (1, 2):
            self.addHost(f"h{number}")
        self.addLink("h1", "s1", **({side: {"loss": 100}} if side else {}))
        self.addLink("h2", "s1")

for side in ("params1", "params2", ""):
    net = network(OneWay(side))
    net.start()
    received = times(net, 2)
    h1, h2 = (net.get(name) for name in ("h1", "h2"))
    print(side or "none", len(received), h2.cmd("nstat -asz IcmpInEchos").split()[-2])
    net.stop()
"""
    rows = [line.split() for line in run(tmp_path, script).splitlines()]
    found = {row[0]: (int(row[1]), int(row[2])) for row in rows if row and row[0] in ("params1", "params2", "none")}
    # Packets of h1 are lost before h2 sees them, and those to h1 behind h2.
    assert found["params1"] == (0, 0)
    assert found["params2"][0] == 0 and found["params2"][1] >= 2
    assert found["none"][0] == 2


def test_link_between_switches_is_shaped_by_both(tmp_path: Path) -> None:
    program = (Path(__file__).parent.parent / "python/softswitch/mininet/programs/wire.p4").resolve()
    script = f"""
net = network(LinearTopo(2, sopts={{"program": "{program}"}}, lopts={{"delay": "10ms"}}))
net.start()
print("rtt", *times(net))
net.stop()
"""
    line = next(line for line in run(tmp_path, script).splitlines() if line.startswith("rtt"))
    rtts = [float(time) for time in line.split()[1:]]
    # Three links, both ways.
    assert len(rtts) == 5 and 60 <= min(rtts) < 90


def test_switches_add_their_coverage_to_one_file(tmp_path: Path) -> None:
    program = (Path(__file__).parent.parent / "python/softswitch/mininet/programs/wire.p4").resolve()
    script = f"""
net = network(LinearTopo(2, sopts={{"program": "{program}", "coverage": "coverage.info"}}))
net.start()
print("received:", len(times(net, 2)))
net.stop()
"""
    output = run(tmp_path, script)
    assert "received: 2" in output
    lines = (tmp_path / "coverage.info").read_text().splitlines()
    assert f"SF:{program}" in lines
    # Both switches pass two requests and two replies.
    assert max(int(line.split(",")[1]) for line in lines if line.startswith("DA:")) >= 8
    assert program.name in (tmp_path / "coverage.html").read_text()


def test_mn_knows_switch_host_and_link(tmp_path: Path) -> None:
    custom = subprocess.run([sys.executable, "-m", "softswitch.mininet"], capture_output=True, text=True, check=True).stdout.strip()
    chosen = ["--custom", custom, "--switch", "soft", "--host", "soft", "--link", "soft,bw=100,delay=1ms"]
    rest = ["--topo", "single,3", "--controller", "none", "--mac", "--arp", "--test", "pingall"]
    output = isolated(sys.executable, "/usr/bin/mn", *chosen, *rest, folder=tmp_path)
    assert "0% dropped (6/6 received)" in output


def test_faults_are_named(tmp_path: Path) -> None:
    script = """
(open("bad.json", "w")).write("{}")
for program in ("none.p4", "bad.json"):
    net = network(SingleSwitchTopo(1, sopts={"program": program}))
    try:
        net.start()
    except (SwitchError) as error:
        print("fault:", error)
    net.stop()
try:
    network(SingleSwitchTopo(1, lopts={"jitter": "1ms"}))
except LinkError as error:
    print("fault:", error)
"""
    faults = [line for line in run(tmp_path, script).splitlines() if line.startswith("fault:")]
    assert faults[0] == "fault: s1: none.p4: no such file: name a P4 program, or the JSON that a compiler made from it"
    assert faults[1].startswith("fault: s1: softswitch did not start: ")
    assert faults[2] == "fault: jitter: not a parameter of SoftLink: use bw, delay, loss, max_queue_size"
