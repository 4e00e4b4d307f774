# SPDX-License-Identifier: Apache-2.0
"""The compiled program in this process, with the controller's table entries.

It serves tests with more packets than an emulated network can forward.
"""

from pathlib import Path

import yaml

import softswitch
from frontage.config import loads
from frontage.p4.entries import Action, Key, Match
from frontage.p4.p4info import Schema
from frontage.p4.reasons import drops, outcomes
from frontage.state.offline import contents
from frontage_testbed.programs import REPOSITORY

DROPS, OUTCOMES = "FrontageIngress.drops", "FrontageIngress.outcomes"


class Switch:
    """A pipeline programmed with a configuration."""

    def __init__(self, configuration: dict[str, object], directory: Path) -> None:
        program = softswitch.compile(REPOSITORY / "p4src" / "v1model" / "frontage.p4")
        assert program.p4info is not None
        p4info = directory / "frontage.p4info.txtpb"
        p4info.write_text(program.p4info)
        schema = Schema.load(p4info)
        self._tables = schema.tables
        self.pipeline = softswitch.Pipeline(program)
        config = loads(yaml.safe_dump(configuration), directory / "frontage.yaml")
        entries, _ = contents(config, schema)
        for key, action in entries.items():
            self._install(key, action)

    def _install(self, key: Key, action: Action) -> None:
        table = self._tables[key.table].full_name
        known = self.pipeline.program.tables[table]
        full_name = next(name for name in known["actions"] if name.rpartition(".")[2] == action.name)
        params = dict(zip(self.pipeline.program.actions[full_name], action.params, strict=True))
        if not key.match:
            self.pipeline.set_default(table, full_name, params)
            return
        match: dict[str, Match] = dict(zip(known["key"], key.match, strict=True))
        self.pipeline.insert(table, match, full_name, params)

    def counts(self) -> dict[str, int]:
        """Return the nonzero packet counters, by reason of the drop and by how the server was found."""
        counts = {}
        for counter, names in ((DROPS, drops()), (OUTCOMES, outcomes())):
            for index, reason in names.items():
                packets, _ = self.pipeline.counter(counter, index)
                if packets:
                    counts[reason.name] = packets
        return counts
