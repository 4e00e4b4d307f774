# SPDX-License-Identifier: Apache-2.0
"""Match kinds, action selectors and idle timeouts of the target."""

import random

import finsy as fy

from frontage_ptf.probe import ProbeTest, probe


class TablesTest(ProbeTest):
    program = "tables"


class PrefixesByLength(TablesTest):
    """The longest prefix wins in any order of insertion. The default action can be set and reset."""

    def runTest(self) -> None:
        table = "TablesIngress.prefixes"
        rng = random.Random(1)
        prefixes = [(0xC0A80000 >> (32 - n) << (32 - n) if n else 0, n) for n in range(8, 33)]
        for network, length in rng.sample(prefixes, len(prefixes)):
            self.client.write(+self.client.entry(table, {"word": f"{network}/{length}"}, "mark", port=2, value=length))
        for shared in range(8, 33):
            word = 0xC0A80000 ^ (0 if shared == 32 else 1 << (31 - shared))
            self.comes_out(probe(1, word=word), 2, probe(1, word=word, value=shared))
        self.client.write(~self.client.entry(table, None, "mark", port=3, value=99))
        self.comes_out(probe(1, word=1), 3, probe(1, word=1, value=99))
        self.client.write(~fy.P4TableEntry(table, is_default_action=True))
        self.is_dropped(probe(1, word=1), probe(1, word=0xC0A80000, value=32))


class TernaryRangeOptional(TablesTest):
    """The matching entry of the highest priority wins in a table of all three kinds, as in a plain list."""

    def runTest(self) -> None:
        rng = random.Random(2)
        rules = []
        for priority in rng.sample(range(1, 1000), 40):
            mask = rng.choice([0, 0xFF, 0xF0F0, 0xFFFFFFFF, 0x80000001])
            low = rng.randrange(8)
            rules.append(
                (priority, rng.getrandbits(32) & mask & 0x800000FF, mask, low, low + rng.randrange(8), rng.choice([None, 1, 2]))
            )
        for priority, word, mask, low, high, index in rules:
            match: dict[str, object] = {}
            if mask:
                match["word"] = f"{word}/&{mask}"
            if (low, high) != (0, 0xFFFF):
                match["value"] = f"{low}...{high}"
            if index is not None:
                match["index"] = index
            entry = self.client.entry("TablesIngress.masks", match, "mark", port=2, value=priority)
            entry.priority = priority
            self.client.write(+entry)
        known = probe(9, 1)
        for _ in range(200):
            index, value, word = rng.choice([1, 2, 3]), rng.randrange(16), rng.choice([0, rng.getrandbits(32) & 0x800000FF])
            matching = [
                priority
                for priority, want, mask, low, high, only in rules
                if word & mask == want and low <= value <= high and only in (None, index)
            ]
            frame = probe(2, index, value, word)
            if matching:
                self.comes_out(frame, 2, probe(2, index, max(matching), word))
            else:
                self.is_dropped(frame, known)


class SelectorSpreadsByWeight(TablesTest):
    """Members of a group share packets by weight, and the same fields always choose the same member."""

    def runTest(self) -> None:
        members, groups = "TablesIngress.members", "TablesIngress.groups"
        mark = next(action.name for action in self.client.schema.actions if action.name.endswith(".mark"))
        for id in (1, 2, 3):
            self.client.write(+fy.P4ActionProfileMember(members, member_id=id, action=fy.P4TableAction(mark, port=2, value=id)))
        weights = {1: 1, 2: 2, 3: 4}
        group = [fy.P4Member(member_id=id, weight=weight) for id, weight in weights.items()]
        self.client.write(+fy.P4ActionProfileGroup(members, group_id=5, max_size=8, members=group))
        entry = fy.P4TableEntry(groups, match=fy.P4TableMatch(index=1), action=fy.P4IndirectAction(group_id=5))
        self.client.write(+entry)
        rng = random.Random(3)
        counts = dict.fromkeys(weights, 0)
        for _ in range(350):
            word = rng.getrandbits(32)
            out = self.comes_out(probe(3, 1, 0, word), 2)
            id = int.from_bytes(out[16:18], "big")
            self.assertEqual(out, self.comes_out(probe(3, 1, 0, word), 2))
            counts[id] += 1
        if self.is_softswitch:  # BMv2 ignores weights
            for id, weight in weights.items():
                self.assertAlmostEqual(50 * weight, counts[id], delta=30, msg=str(counts))
        self.assertNotIn(0, counts.values())


class EntriesTimeOut(TablesTest):
    """An entry that no packet hits within its timeout is reported. One that is hit is not, until the hits stop."""

    def runTest(self) -> None:
        entry = self.client.entry("TablesIngress.sessions", {"index": 1}, "send", port=2)
        entry.idle_timeout_ns = 400_000_000
        lasting = self.client.entry("TablesIngress.sessions", {"index": 2}, "send", port=2)
        self.client.write(+entry, +lasting)
        for _ in range(10):
            self.comes_out(probe(4, 1), 2)
            self.assertIsNone(self.receive(0.1))
        self.assertTrue(self.client.received.empty(), "an entry in use was reported")
        notice = self.client.next_message("idle_timeout_notification").idle_timeout_notification
        (expired,) = (fy.P4TableEntry.decode_entry(one, self.client.schema) for one in notice.table_entry)
        self.assertEqual(1, expired["index"])
        self.assertEqual(2, len(self.client.read(fy.P4TableEntry("TablesIngress.sessions"))), "reported is not removed")
