# SPDX-License-Identifier: Apache-2.0
"""Tests the package with two of the pipeline's test programs: a router, and one that uses every feature."""

import json
from pathlib import Path
from typing import Any

import pytest

import softswitch

PROGRAMS = Path(__file__).parents[2] / "pipeline" / "tests" / "programs"
ETHERNET = bytes.fromhex("020000000002 020000000001")


def ipv4(destination: str, ttl: int = 64) -> bytes:
    """Return a packet from 192.0.2.1 with a correct checksum."""
    numbers = bytes(int(n) for n in destination.split("."))
    header = bytearray.fromhex("4500001a00010000") + bytes([ttl, 17, 0, 0, 192, 0, 2, 1]) + numbers
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
    header[10:12] = (0xFFFF - (total % 0xFFFF)).to_bytes(2, "big")
    return ETHERNET + b"\x08\x00" + header + b"hello!"


def command(op: int, arg: int = 0, z: int = 0) -> bytes:
    """Return a packet for everything.p4."""
    return ETHERNET + b"\x90\x03" + bytes([op, arg, 0, 0, 0]) + z.to_bytes(4, "big") + bytes(24) + b"payload"


@pytest.fixture
def router() -> softswitch.Pipeline:
    pipeline = softswitch.Pipeline(softswitch.compile(PROGRAMS / "router.p4"))
    pipeline.insert("I.routes", {"hdr.ipv4.dst": "10.0.0.0/8"}, "I.set_next_hop", {"next_hop": 1})
    hop: dict[str, int | str | bytes] = {"port": 2, "src": "02:00:00:00:00:03", "dst": bytes.fromhex("020000000004")}
    pipeline.insert("I.next_hops", {"m.next_hop": 1}, "I.forward", hop)
    return pipeline


@pytest.fixture
def everything() -> softswitch.Pipeline:
    return softswitch.Pipeline(softswitch.load(PROGRAMS / "everything.json"))


def test_router_forwards_packet(router: softswitch.Pipeline) -> None:
    ((port, frame),) = router.send(ipv4("10.1.2.3"), port=1, time_ns=1000)
    assert port == 2
    assert frame[:12] == bytes.fromhex("020000000004 020000000003")
    assert frame[12:] == ipv4("10.1.2.3", ttl=63)[12:]
    assert router.send(ipv4("11.1.2.3"), port=1) == []


def test_entry_is_read_modified_deleted_and_reinserted(router: softswitch.Pipeline) -> None:
    router.send(ipv4("10.1.2.3"))
    (route,) = router.entries("I.routes")
    assert route == {
        "match": {"hdr.ipv4.dst": (0x0A000000, 8)},
        "priority": 0,
        "action": "I.set_next_hop",
        "params": {"next_hop": 1},
    }
    (hop,) = router.entries("I.next_hops")
    assert hop["counter"] == (1, len(ipv4("10.1.2.3")))
    router.modify("I.routes", route["match"], "I.drop")
    assert router.entries("I.routes")[0]["action"] == "I.drop"
    router.delete("I.routes", route["match"])
    assert router.entries("I.routes") == []
    router.insert("I.routes", **{k: route[k] for k in ("match", "action", "params", "priority")})
    assert router.entries("I.routes") == [route]


def test_default_action_can_be_set_and_restored(router: softswitch.Pipeline) -> None:
    assert router.default("I.routes") == {"action": "I.drop", "params": {}}
    router.set_default("I.routes", "I.set_next_hop", {"next_hop": "0x1"})
    assert router.default("I.routes") == {"action": "I.set_next_hop", "params": {"next_hop": 1}}
    router.set_default("I.routes")
    assert router.default("I.routes") == {"action": "I.drop", "params": {}}


def test_default_entry_counts_misses(everything: softswitch.Pipeline) -> None:
    before = everything.default("I.acl")["counter"]
    frame = command(0)
    everything.send(frame)
    assert (before, everything.default("I.acl")["counter"]) == ((0, 0), (1, len(frame)))


def test_keys_may_be_ternary_range_lpm_and_valid(everything: softswitch.Pipeline) -> None:
    match: dict[str, Any] = {"hdr.eth.src": "02:00:00:00:00:00 &&& ff:ff:ff:ff:ff:00", "hdr.eth.type": "0x9000..0x9fff"}
    everything.insert("I.acl", match, "I.note", {"v": 7}, priority=5)
    (entry,) = everything.entries("I.acl")
    assert entry["match"] == {
        "hdr.eth.src": (0x020000000000, 0xFFFFFFFFFF00),
        "hdr.eth.type": (0x9000, 0x9FFF),
        "hdr.cmd.wide": (0, 0),
    }
    everything.send(command(0))
    assert everything.entries("I.acl")[0]["counter"] == (1, 54)
    everything.delete("I.acl", match, priority=5)
    everything.insert("I.wide_routes", {"hdr.cmd.wide": "2001:db8::/32", "hdr.cmd.$valid$": True}, "NoAction")
    (entry,) = everything.entries("I.wide_routes")
    assert entry["match"] == {"hdr.cmd.wide": (0x20010DB8 << 96, 32), "hdr.cmd.$valid$": True}


def test_entries_use_members_and_groups(everything: softswitch.Pipeline) -> None:
    everything.insert_member("I.balancer", 1, "I.forward", {"port": 4})
    everything.insert_member("I.balancer", 2, "I.forward", {"port": 4})
    everything.insert_group("I.balancer", 1, [1, 2])
    everything.insert("I.ports", {"hdr.eth.dst": "02:00:00:00:00:02"}, group=1)
    assert [port for port, _ in everything.send(command(0))] == [4]
    with pytest.raises(softswitch.Error, match="in use"):
        everything.delete_group("I.balancer", 1)
    everything.modify("I.ports", {"hdr.eth.dst": "02:00:00:00:00:02"}, member=1)
    everything.delete_group("I.balancer", 1)
    assert everything.entries("I.ports")[0]["member"] == 1


def test_counters_registers_and_meters_can_be_set(everything: softswitch.Pipeline) -> None:
    everything.set_register("I.sums", 0, 40)
    everything.send(command(1, z=2))
    assert everything.register("I.sums", 0) == 42
    assert everything.counter("I.ops", 1) == (1, 54)
    everything.set_counter("I.ops", 1, 10, 20)
    everything.send(command(1))
    assert everything.counter("I.ops", 1) == (11, 74)
    everything.set_register("I.wides", 1, 1 << 100)
    assert everything.register("I.wides", 1) == 1 << 100
    # The burst is one packet, so the second is red; the program writes the colour into a field of three bits.
    everything.set_meter("I.rate", 5, cir=1, cburst=1, pir=1, pburst=1)
    colours = [everything.send(command(5, arg=5))[0][1][39] >> 5 for _ in range(2)]
    assert colours == [0, 2]
    with pytest.raises(softswitch.Error, match="out of range"):
        everything.register("I.sums", 1 << 20)


def test_multicast_clones_digests_and_log(everything: softswitch.Pipeline) -> None:
    everything.set_multicast_group(9, [4])
    everything.set_multicast_group(9, [4, (5, 2)])
    assert [port for port, _ in everything.send(command(9, arg=9))] == [4, 5]
    everything.delete_multicast_group(9)
    assert everything.send(command(9, arg=9)) == []
    everything.set_clone_session(3, [7], truncate_to=20)
    sent = everything.send(command(7, arg=3))
    assert [(port, len(frame)) for port, frame in sent] == [(7, 20), (1, 54)]
    everything.delete_clone_session(3)
    everything.send(command(6))
    ((name, values),) = everything.take_digests()
    assert (name, values) == ("digest_t", [0x020000000001, 0])
    assert everything.take_digests() == []
    everything.send(command(15))
    assert everything.take_log()[0].startswith("hash ")


def test_coverage_adds_up_in_a_file(router: softswitch.Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "coverage.info"
    assert not router.coverage
    with pytest.raises(softswitch.Error, match="coverage is off"):
        router.save_coverage(file)
    router.coverage = True
    for _ in range(2):
        router.send(ipv4("10.1.2.3"), port=1)
        assert router.save_coverage(file) == []
    lines = file.read_text().splitlines()
    assert f"SF:{PROGRAMS / 'router.p4'}" in lines
    assert "FNDA:2,I.forward" in lines and "FNDA:0,I.drop" in lines
    assert file.with_suffix(".html").exists()


def test_trace_is_available_as_dictionaries_text_and_html(router: softswitch.Pipeline) -> None:
    assert not router.tracing
    router.tracing = True
    router.send(ipv4("10.1.2.3"), port=1, time_ns=5)
    router.send(ipv4("11.1.2.3"), port=1)
    trace = router.take_trace()
    assert len(trace) == 3
    ingress = trace.passes[0]
    assert (ingress["packet"], ingress["pass"], ingress["port"], ingress["time_ns"]) == (1, "ingress", 1, 5)
    tables = [step for step in ingress["steps"] if step["step"] == "table"]
    assert tables[0]["hit"] == {"match": {"hdr.ipv4.dst": "0x0a000000/8"}}
    assert tables[0]["action"]["source"]["line"] > 1
    assert trace.passes[2]["outcome"] == {"is": "dropped", "by": "I.drop"}
    assert "\n      ipv4.ttl: 64 -> 63\n" in str(trace)
    html = trace._repr_html_()
    assert html.count("<details") == 2
    assert "64 -&gt; 63" in html
    assert len(router.take_trace()) == 0


def test_program_describes_its_objects(router: softswitch.Pipeline) -> None:
    program = router.program
    assert program.tables["I.routes"] == {
        "key": {"hdr.ipv4.dst": ("lpm", 32)},
        "actions": ["I.set_next_hop", "I.drop"],
        "size": 16384,
    }
    assert program.actions["I.forward"] == {"port": 9, "src": 48, "dst": 48}
    assert json.loads(program.json)["pipelines"]
    assert program.p4info is not None
    assert "I.routes" in program.p4info
    assert "I.routes" in program._repr_html_()
    assert softswitch.load_text(program.json).p4info is None
    other = softswitch.load(PROGRAMS / "everything.json")
    assert other.registers["I.sums"][1] == 32
    assert other.counters["I.ops"] == 8


def test_compile_text_uses_defines_and_include_dirs(tmp_path: Path) -> None:
    source = (PROGRAMS / "router.p4").read_text().replace("16384", "ROUTES")
    (tmp_path / "sizes.p4").write_text("#define ROUTES LARGE\n")
    source = '#include "sizes.p4"\n' + source
    program = softswitch.compile_text(source, include_dirs=[tmp_path], defines={"LARGE": 77})
    assert program.tables["I.routes"]["size"] == 77


def test_errors_name_fault_and_fix(router: softswitch.Pipeline) -> None:
    with pytest.raises(softswitch.Error, match=r"unknown table I\.route: use one of: I\.routes, I\.next_hops"):
        router.insert("I.route", {}, "I.drop")
    with pytest.raises(softswitch.Error, match=r"unknown action drop: use one of: I\.set_next_hop, I\.drop"):
        router.insert("I.routes", {}, "drop")
    with pytest.raises(softswitch.Error, match=r"missing exact key m\.next_hop"):
        router.insert("I.next_hops", {}, "I.drop")
    with pytest.raises(softswitch.Error, match="missing parameter next_hop"):
        router.insert("I.routes", {}, "I.set_next_hop")
    with pytest.raises(softswitch.Error, match="0x010000 does not fit 16 bits"):
        router.insert("I.routes", {}, "I.set_next_hop", {"next_hop": 65536})
    with pytest.raises(softswitch.Error, match=r"I\.routes, hdr\.ipv4\.dst: invalid value \"10\.0\.0\""):
        router.insert("I.routes", {"hdr.ipv4.dst": "10.0.0/8"}, "I.drop")
    with pytest.raises(softswitch.Error, match="invalid value -1"):
        router.insert("I.next_hops", {"m.next_hop": -1}, "I.drop")
    with pytest.raises(softswitch.Error, match="already exists"):
        router.insert("I.next_hops", {"m.next_hop": 1}, "I.drop")
    with pytest.raises(softswitch.CompileError, match=r"bad\.p4:1"):
        softswitch.compile_text("control C() { apply { x = 1; } }", "bad.p4")
    with pytest.raises(softswitch.Error, match="not JSON"):
        softswitch.load_text("{", "bad.json")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        softswitch.compile("nowhere.p4")


def test_stf_script_reports_differences() -> None:
    program = softswitch.compile(PROGRAMS / "router.p4")
    scripts = PROGRAMS.parents[2] / "stf" / "tests" / "scripts"
    assert softswitch.run_stf(program, (scripts / "router.stf").read_text()) == []
    differences = softswitch.run_stf(program, (scripts / "wrong.stf").read_text())
    assert differences[0].startswith("line 5: port 2, from the packet of line 4: byte 22")
    with pytest.raises(softswitch.Error, match="line 1: unknown statement what"):
        softswitch.run_stf(program, "what\n")
