# SPDX-License-Identifier: Apache-2.0
"""P4Runtime for a controller: arbitration, errors that name their reason and change nothing, full tables, programs."""

from pathlib import Path
from typing import Any

import finsy as fy
import grpc
from finsy.proto import p4r
from ptf.testutils import test_params_get

from frontage_ptf.client import DEVICE_ID, Client, WriteRefusedError
from frontage_ptf.probe import ProbeTest, probe

SMALL = "TablesIngress.small"
OK = grpc.StatusCode.OK
DUPLICATE = grpc.StatusCode.ALREADY_EXISTS
NOT_FOUND = grpc.StatusCode.NOT_FOUND
INVALID = grpc.StatusCode.INVALID_ARGUMENT
FULL = grpc.StatusCode.RESOURCE_EXHAUSTED


class ControlTest(ProbeTest):
    program = "tables"

    def small(self, index: int, port: int = 2) -> fy.P4TableEntry:
        return self.client.entry(SMALL, {"index": index}, "send", port=port)

    def installed(self) -> dict[int, int]:
        """Return ports by index, as the small table has them."""
        return {entry["index"]: entry.action.args["port"] for entry in self.client.read(fy.P4TableEntry(SMALL))}

    def raw(self, entity: p4r.Entity, kind: p4r.Update.Type.ValueType = p4r.Update.INSERT) -> None:
        self.client.write_raw([p4r.Update(type=kind, entity=entity)])


class EntriesInsertModifyDelete(ControlTest):
    """Reads return what was written, and packets follow it."""

    def runTest(self) -> None:
        self.client.write(+self.small(1, 2), +self.small(2, 3))
        self.assertEqual({1: 2, 2: 3}, self.installed())
        self.comes_out(probe(0, 1), 2, probe(0, 1))
        self.comes_out(probe(0, 2), 3, probe(0, 2))
        self.client.write(~self.small(2, 4))
        self.comes_out(probe(0, 2), 4)
        self.client.write(-self.small(2))
        self.is_dropped(probe(0, 2), probe(0, 1))
        self.assertEqual({1: 2}, self.installed())


class FullTableRejectsInserts(ControlTest):
    """One entry too many is rejected, and the others stay. After a deletion there is room again."""

    def runTest(self) -> None:
        self.client.write(*(+self.small(index) for index in range(4)))
        self.refused(FULL, lambda: self.client.write(+self.small(4)))
        self.assertEqual({0: 2, 1: 2, 2: 2, 3: 2}, self.installed())
        self.comes_out(probe(0, 3), 2)
        self.client.write(~self.small(3, 4))
        self.client.write(-self.small(0))
        self.client.write(+self.small(4))
        self.assertEqual({1: 2, 2: 2, 3: 4, 4: 2}, self.installed())


class BatchFillsTheTable(ControlTest):
    """In a batch, valid updates take effect, and each of the others has its own error."""

    def runTest(self) -> None:
        error = self.refused(DUPLICATE, lambda: self.client.write(+self.small(1), +self.small(1), +self.small(2), -self.small(9)))
        self.assertEqual([OK, DUPLICATE, OK, NOT_FOUND], error.codes)
        self.assertEqual({1: 2, 2: 2}, self.installed())
        error = self.refused(FULL, lambda: self.client.write(*(+self.small(index) for index in range(3, 7))))
        self.assertEqual([True, True, False, False], [code == OK for code in error.codes])
        self.assertEqual({1, 2, 3, 4}, set(self.installed()))


class WrongUpdatesChangeNothing(ControlTest):
    """Each kind of invalid update has an error code, and changes neither table nor packets."""

    def runTest(self) -> None:
        self.client.write(+self.small(1), +self.small(2, 3))
        good = (+self.small(7)).encode(self.client.schema)
        table = self.client.schema.tables

        def broken(**changes: Any) -> p4r.Entity:
            entity = p4r.Entity()
            entity.CopyFrom(good)
            for name, value in changes.items():
                if name == "action":
                    entity.table_entry.action.action.action_id = value
                elif name == "params":
                    del entity.table_entry.action.action.params[:]
                elif name == "match":
                    del entity.table_entry.match[:]
                elif name == "key":
                    entity.table_entry.match[0].exact.value = value
                elif name == "port":
                    entity.table_entry.action.action.params[0].value = value
                elif name == "field":
                    entity.table_entry.match[0].field_id = value
                else:
                    setattr(entity.table_entry, name, value)
            return entity

        mark = next(action for action in self.client.schema.actions if action.name.endswith(".mark"))
        cases = {
            "unknown table": (broken(table_id=0x02FFFFFF), None),
            "table id of an action": (broken(table_id=mark.id), None),
            "unknown action": (broken(action=0x01FFFFFF), None),
            "action of another table": (broken(action=mark.id), INVALID),
            "parameter missing": (broken(params=None), INVALID),
            "parameter too wide": (broken(port=b"\x02\x00"), None),
            "key missing": (broken(match=None), INVALID),
            "key too wide": (broken(key=b"\x01\x00"), None),
            "key empty": (broken(key=b""), None),
            "unknown field": (broken(field=99), None),
            "priority without need": (broken(priority=5), INVALID),
            "default with a key": (broken(is_default_action=True), INVALID),
            "no entity": (p4r.Entity(), INVALID),
        }
        if self.target == "bmv2":
            del cases["key empty"]  # BMv2 reads it as zero
        for name, (entity, code) in cases.items():
            with self.subTest(name):
                with self.assertRaises(WriteRefusedError) as caught:
                    self.raw(entity)
                if self.is_softswitch:
                    self.assertIn(
                        caught.exception.codes[0], (code,) if code else (INVALID, NOT_FOUND, grpc.StatusCode.OUT_OF_RANGE)
                    )
                self.assertEqual({1: 2, 2: 3}, self.installed())
        self.refused(INVALID, lambda: self.raw(good, p4r.Update.UNSPECIFIED))
        self.refused(DUPLICATE, lambda: self.client.write(+self.small(1, 4)))
        self.refused(NOT_FOUND, lambda: self.client.write(~self.small(7)))
        self.refused(NOT_FOUND, lambda: self.client.write(-self.small(7)))
        with self.assertRaises(WriteRefusedError):
            self.client.write(~self.client.entry(SMALL, None, "send", port=2))  # its default action is const
        fixed = self.client.entry("TablesIngress.fixed", {"index": 9}, "send", port=2)
        with self.assertRaises(WriteRefusedError):
            self.client.write(+fixed)
        self.assertEqual({1: 2, 2: 3}, self.installed())
        self.assertIn("TablesIngress.small", [one.name for one in table])
        self.comes_out(probe(0, 2), 3)


class ConstEntriesStay(ControlTest):
    """`const entries` exist from the start, can be read, and cannot be removed."""

    def runTest(self) -> None:
        self.comes_out(probe(9, 1), 2)
        self.is_dropped(probe(9, 2), probe(9, 1))
        entries = self.client.read(fy.P4TableEntry("TablesIngress.fixed"))
        self.assertEqual({1, 2}, {entry["index"] for entry in entries})


class InvalidProgramKeepsTheOldOne(ControlTest):
    """A program that cannot be loaded is rejected. The old one keeps running with its entries."""

    def runTest(self) -> None:
        self.only_on_softswitch("way back from a program that it cannot load")
        self.client.write(+self.small(1))
        config = p4r.ForwardingPipelineConfig(p4info=self.client.schema.p4info, p4_device_config=b'{"not": "a program"')
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID,
            election_id=self.client.election_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=config,
        )
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.stub.SetForwardingPipelineConfig(request)
        self.assertEqual(INVALID, caught.exception.code())
        self.comes_out(probe(0, 1), 2)
        self.assertEqual({1: 2}, self.installed())


class ProgramCanBeReadBack(ControlTest):
    """GetForwardingPipelineConfig returns what was set."""

    def runTest(self) -> None:
        got = self.client.stub.GetForwardingPipelineConfig(p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)).config
        self.assertEqual(self.client.schema.p4info, got.p4info)


class SecondControllerStandsBy(ControlTest):
    """The highest election id is primary. Another controller may read but not write, and is notified when it
    becomes primary."""

    def runTest(self) -> None:
        self.client.write(+self.small(1))
        self.assertEqual(0, self.client.elected)
        mine = self.client.election_id.low
        second = self.second(mine - 1)
        self.assertNotEqual(0, second.elected)
        self.assertEqual(1, len(second.read(fy.P4TableEntry(SMALL))))
        with self.assertRaises(WriteRefusedError) as caught:
            second.write(+self.small(2))
        self.assertEqual(grpc.StatusCode.PERMISSION_DENIED, caught.exception.codes[0])
        third = self.second(mine + 1)
        self.assertEqual(0, third.elected)
        self.assertNotEqual(0, self.client.next_message("arbitration").arbitration.status.code)
        third.write(+self.small(3))
        with self.assertRaises(WriteRefusedError):
            self.client.write(+self.small(4))
        third.close()
        self.client.next_message("arbitration")  # it has disconnected
        self.assertEqual(0, self.client.arbitrate(mine + 2))
        self.client.write(+self.small(4))
        self.assertEqual({1, 3, 4}, set(self.installed()))

    def second(self, election_id: int) -> Client:
        client = Client(test_params_get()["grpcaddr"], self.client.program, election_id)
        self.addCleanup(client.close)
        return client


class UnknownDeviceIsRejected(ControlTest):
    """A request for another device is rejected."""

    def runTest(self) -> None:
        request = p4r.WriteRequest(device_id=77, election_id=self.client.election_id)
        request.updates.append(p4r.Update(type=p4r.Update.INSERT, entity=self.small(1).encode(self.client.schema)))
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.stub.Write(request)
        self.assertIn(caught.exception.code(), (NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED))
        self.assertEqual({}, self.installed())


class FrontageTablesHaveTheirSizes(ProbeTest):
    """The target grants the sizes of p4src/include/size.p4: one VIP too many is rejected, the others stay."""

    program = "frontage"

    def runTest(self) -> None:
        table = "FrontageIngress.vip.policy"
        size = self.client.schema.tables[table].size
        params = dict.fromkeys(("policy", "flow_unit", "tree_base", "tree_depth", "pool_size", "maglev_mask"), 1)
        entries = [self.client.entry(table, {"vip_id": id}, "set_policy", **params) for id in range(size + 1)]
        self.client.write(*(+entry for entry in entries[:size]))
        self.refused(FULL, lambda: self.client.write(+entries[size]))
        self.assertEqual(size, len(self.client.read(fy.P4TableEntry(table))))
        text = (Path(__file__).resolve().parents[1] / "p4src" / "include" / "size.p4").read_text()
        self.assertIn(f"#define VIPS {size}\n", text)
