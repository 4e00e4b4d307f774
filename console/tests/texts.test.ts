// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { EventParser } from "../src/api/sse";
import { age, bits, percent, short, whole } from "../src/state/format";
import { describeEvent } from "../src/views/events";
import { dropReason, groups, outcome, type Pass } from "../src/views/trace";

describe("EventParser", () => {
  it("joins events that arrive in parts", () => {
    const parser = new EventParser();
    expect(parser.push("id: 7\nevent: ser")).toEqual([]);
    expect(parser.push('ver\ndata: {"name"')).toEqual([]);
    expect(parser.push(':"web1"}\n\n: keep-alive\n\n')).toEqual([
      { id: "7", kind: "server", data: '{"name":"web1"}' },
      { id: null, kind: "", data: "" },
    ]);
  });
});

describe("format", () => {
  it("writes numbers with prefixes", () => {
    expect(short(999)).toBe("999");
    expect(short(12_345)).toBe("12.3\u202fk");
    expect(short(null)).toBe("–");
    expect(bits(125_000)).toBe("1.00\u202fMbit/s");
    expect(bits(1)).toBe("8\u202fbit/s");
    expect(percent(0.125)).toBe("13\u202f%");
    expect(whole(1_234_567)).toBe("1\u202f234\u202f567");
    expect(age(100)).toBe("2\u202fmin");
  });
});

describe("events", () => {
  it("names what an operation did", () => {
    const data = { verb: "drain", arguments: { name: "web2" }, state: "succeeded", changed: "server web2 is draining" };
    expect(describeEvent({ at: 0, kind: "operation", data })).toBe("drain web2: server web2 is draining");
  });
});

describe("traces", () => {
  const pass: Pass = {
    packet: 1,
    pass: "ingress",
    port: 1,
    instance: "normal",
    time_ns: 0,
    length: 60,
    steps: [
      { step: "parser_state", state: "start" },
      { step: "extract", header: "ethernet", fields: {} },
      { step: "condition", name: "node", holds: true },
      { step: "table", table: "FrontageIngress.vip.vip4", key: {} },
      { step: "changed", field: "meta.vip_id", from: "0", to: "1" },
      { step: "extern", call: "count", args: { counter: "FrontageIngress.drops", index: "15" } },
    ],
    outcome: { is: "dropped" },
    enqueued: [],
  };

  it("puts changes below what caused them", () => {
    expect(groups(pass.steps).map((group) => [group.kind, group.steps.length])).toEqual([
      ["parser", 1],
      ["condition", 1],
      ["table", 3],
    ]);
  });

  it("names the drop reason", () => {
    expect(dropReason(pass)).toBe(15);
    expect(outcome(pass, { "15": "vip-no-service" })).toBe("dropped: vip-no-service");
  });
});
