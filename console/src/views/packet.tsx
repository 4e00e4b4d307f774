// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { ask } from "../api/client";
import type { Capture, Flags } from "../api/schema";
import { overview } from "../state/live";
import { may } from "../state/session";
import { Badge, Empty, Message, Panel, TextField } from "../ui/parts";
import { DROP_NUMBERS, DROPS } from "./meanings";
import { type Call, dropReason, type Group, groups, outcome, type Pass, type TraceStep } from "./trace";

type Mode = "follow" | "inject";

export function PacketView() {
  const [mode, setMode] = useState<Mode>("follow");
  const [found, setFound] = useState<Capture | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  if (!may("operator")) {
    return (
      <div class="view">
        <h1>Packet</h1>
        <Empty>Following a packet slows the switch down, so it needs the role operator.</Empty>
      </div>
    );
  }
  const run = async (body: Record<string, unknown>) => {
    setBusy(true);
    setError(null);
    try {
      setFound(await ask<Capture>("captures", body));
    } catch (problem) {
      setFound(null);
      setError(problem instanceof Error ? problem.message : String(problem));
    }
    setBusy(false);
  };
  return (
    <div class="view">
      <div class="title">
        <h1>Packet</h1>
        <div class="tabs" role="tablist" aria-label="Which packet">
          {(["follow", "inject"] as const).map((one) => (
            <button key={one} type="button" role="tab" aria-selected={mode === one} onClick={() => setMode(one)}>
              {one === "follow" ? "Follow the next packet" : "Inject a segment"}
            </button>
          ))}
        </div>
      </div>
      <Panel title={mode === "follow" ? "The next packet with these addresses and ports" : "A segment from a client"}>
        {mode === "follow" ? <FollowForm run={run} busy={busy} /> : <InjectForm run={run} busy={busy} />}
      </Panel>
      {busy && <Message tone="info">Waiting for the packet …</Message>}
      {error !== null && <Message tone="bad">{error}</Message>}
      {found !== null && !busy && <Result capture={found} />}
      {found === null && error === null && !busy && (
        <Empty>
          softswitch shows each step of one packet: parser states, tables, keys, entries, actions, and why it was
          dropped.
        </Empty>
      )}
    </div>
  );
}

interface FormProps {
  run: (body: Record<string, unknown>) => Promise<void>;
  busy: boolean;
}

const NAMES: Record<string, string> = {
  source: "Source address",
  source_port: "Source port",
  destination: "Destination address",
  destination_port: "Destination port",
};

function FollowForm({ run, busy }: FormProps) {
  const vips = overview.state.value.value?.vips ?? [];
  const switches = overview.state.value.value?.switches ?? [];
  const [values, setValues] = useState<Record<string, string>>({});
  const [device, setDevice] = useState("");
  const set = (name: string, value: string) => setValues((before) => ({ ...before, [name]: value }));
  const submit = (event: Event) => {
    event.preventDefault();
    const given = Object.entries(values).filter(([, value]) => value.trim() !== "");
    const body = Object.fromEntries(
      given.map(([name, value]) => [name, name.endsWith("port") ? Number(value) : value.trim()]),
    );
    void run({ ...body, ...(device === "" ? {} : { device }), seconds: 10 });
  };
  const choose = (name: string) => {
    const vip = vips.find((one) => one.name === name);
    setValues(vip === undefined ? {} : { destination: vip.address, destination_port: String(vip.port) });
  };
  return (
    <form class="fields" onSubmit={submit}>
      <label>
        To the VIP
        <select onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">any packet</option>
          {vips.map((vip) => (
            <option key={vip.name}>{vip.name}</option>
          ))}
        </select>
      </label>
      {Object.entries(NAMES).map(([name, title]) => (
        <TextField
          key={name}
          label={title}
          name={name}
          value={values[name] ?? ""}
          onChange={(value) => set(name, value)}
        />
      ))}
      {switches.length > 1 && (
        <label>
          Switch
          <select value={device} onChange={(event) => setDevice(event.currentTarget.value)}>
            {switches.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
      )}
      <button type="submit" class="primary" disabled={busy}>
        Follow
      </button>
    </form>
  );
}

const FLAGS: [Flags, string][] = [
  ["syn", "SYN: a new connection"],
  ["ack", "ACK"],
  ["fin", "FIN, ACK"],
  ["rst", "RST"],
];

function InjectForm({ run, busy }: FormProps) {
  const vips = (overview.state.value.value?.vips ?? []).filter((vip) => vip.protocol === "tcp");
  const [vip, setVip] = useState("");
  const [client, setClient] = useState("");
  const [port, setPort] = useState("40000");
  const [flags, setFlags] = useState<Flags>("syn");
  const [tsecr, setTsecr] = useState("0");
  const chosen = vip || vips[0]?.name || "";
  const submit = (event: Event) => {
    event.preventDefault();
    const inject = {
      vip: chosen,
      client: client.trim(),
      client_port: Number(port),
      flags,
      tsval: 1,
      tsecr: Number(tsecr),
    };
    void run({ seconds: 10, inject });
  };
  return (
    <form class="fields" onSubmit={submit}>
      <label>
        To the VIP
        <select value={chosen} onChange={(event) => setVip(event.currentTarget.value)}>
          {vips.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
      </label>
      <TextField label="Client" name="client" value={client} onChange={setClient} required />
      <TextField label="Port of the client" name="client_port" value={port} onChange={setPort} numeric required />
      <label>
        Flags
        <select value={flags} onChange={(event) => setFlags(event.currentTarget.value as Flags)}>
          {FLAGS.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <TextField
        label={
          <>
            TSecr <small>the cookie that it echoes</small>
          </>
        }
        name="tsecr"
        value={tsecr}
        onChange={setTsecr}
      />
      <button type="submit" class="primary" disabled={busy || chosen === ""}>
        Inject
      </button>
    </form>
  );
}

function Result({ capture }: { capture: Capture }) {
  const passes = capture.passes as unknown as Pass[];
  const [all, setAll] = useState(false);
  if (passes.length === 0) {
    return <Message tone="warn">No such packet came in time.</Message>;
  }
  const last = passes.at(-1);
  const dropped = passes.map(dropReason).find((reason) => reason !== null);
  const name = dropped === undefined || dropped === null ? null : (DROP_NUMBERS[dropped] ?? String(dropped));
  return (
    <>
      <Panel
        title="What happened"
        aside={
          <>
            <label class="inline">
              <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> all
              steps
            </label>
            <button type="button" class="small" onClick={() => download(passes)}>
              Save JSON
            </button>
          </>
        }
      >
        <p class="answer">
          {name !== null ? <Badge tone="bad">dropped</Badge> : <Badge tone="good">{last?.outcome.is ?? ""}</Badge>}
          <span class="answer-name">{name ?? (last === undefined ? "" : outcome(last, DROP_NUMBERS))}</span>
          {name !== null && <span>{DROPS[name]}</span>}
        </p>
        <ol class="way">
          {passes.map((pass) => (
            <li key={`${pass.pass}${pass.time_ns}${pass.port}`}>
              <b>{pass.pass}</b> port {pass.port}
              {pass.instance === "normal" ? "" : `, ${pass.instance.replaceAll("_", " ")}`} →{" "}
              {outcome(pass, DROP_NUMBERS)}
            </li>
          ))}
        </ol>
      </Panel>
      {passes.map((pass, i) => (
        <PassPanel key={`${pass.pass}${pass.time_ns}${pass.port}`} pass={pass} number={i + 1} all={all} />
      ))}
    </>
  );
}

function PassPanel({ pass, number, all }: { pass: Pass; number: number; all: boolean }) {
  const every = groups(pass.steps);
  const found = all ? every : every.filter(isTelling).map(telling);
  return (
    <Panel title={`${number}. ${pass.pass}, port ${pass.port}`} aside={`${pass.length} bytes`}>
      <ol class="trace">
        {found.map((group, i) => (
          <li key={i} class={`step ${group.kind} ${isMiss(group) ? "miss" : ""}`}>
            <StepGroup group={group} />
          </li>
        ))}
        <li class="step end">
          <b>{outcome(pass, DROP_NUMBERS)}</b>
        </li>
      </ol>
    </Panel>
  );
}

/** Conditions, parser states without a header, and tables that missed matter to the authors of the program only. */
function isTelling(group: Group): boolean {
  if (group.kind === "condition") return false;
  if (group.kind === "parser")
    return group.steps.some((step) => step.step === "extract" || step.step === "parser_error");
  if (group.kind === "action" && isOfCompiler(group.title)) return false;
  if (group.kind === "action" || group.kind === "other") return group.steps.some((step) => step.step !== "extern");
  return !(isMiss(group) && group.steps.length === 1);
}

/** Returns true for the name of statements outside actions, which the compiler turns into an action. */
function isOfCompiler(name: string): boolean {
  return /(^|\.)act_l\d+(_\d+)?$/.test(name);
}

/** Leaves out the variables of the compiler, and the parser's way from state to state. */
function telling(group: Group): Group {
  const steps = group.steps.filter(
    (step) =>
      step.step !== "select" &&
      !(step.step === "changed" && /^(tmp|packet_parser\.|checksum_)/.test(shorten(String(step.field)))),
  );
  return { ...group, steps };
}

function isMiss(group: Group): boolean {
  return group.kind === "table" && group.steps[0]?.hit === undefined;
}

function StepGroup({ group }: { group: Group }) {
  const [first, ...rest] = group.steps;
  if (group.kind === "table" && first !== undefined) {
    const hit = first.hit as { match: Record<string, string>; priority?: number } | undefined;
    const action = first.action as Call | undefined;
    return (
      <>
        <div class="step-head">
          <span class="kind">table</span>
          <b class="mono">{shorten(group.title)}</b>
          {hit === undefined ? <Badge tone="idle">miss</Badge> : <Badge tone="good">hit</Badge>}
        </div>
        <Values values={first.key as Record<string, string>} label="key" />
        {hit !== undefined && <Values values={hit.match} label="entry" />}
        {action !== undefined && <Action call={action} />}
        <Effects steps={rest} />
      </>
    );
  }
  if (group.kind === "condition" && first !== undefined) {
    const source = first.source as { text: string; file: string; line: number } | undefined;
    return (
      <div class="step-head">
        <span class="kind">if</span>
        <code>{source?.text ?? String(first.name)}</code>
        <Badge tone={first.holds === true ? "good" : "idle"}>{String(first.holds)}</Badge>
      </div>
    );
  }
  return (
    <>
      <div class="step-head">
        <span class="kind">{group.kind === "parser" ? "state" : group.kind}</span>
        <b class="mono">{shorten(group.title)}</b>
      </div>
      <Effects steps={group.steps} />
    </>
  );
}

function Action({ call }: { call: Call }) {
  const args = Object.entries(call.args).map(([name, value]) => `${name} = ${value}`);
  return (
    <div class="action-line mono">
      → {shorten(call.name)}({args.join(", ")})
      {call.source !== undefined && (
        <small>
          {" "}
          {call.source.file.split("/").at(-1)}:{call.source.line}
        </small>
      )}
    </div>
  );
}

function Values({ values, label }: { values: Record<string, string>; label: string }) {
  const entries = Object.entries(values);
  if (entries.length === 0) return null;
  return (
    <div class="values">
      <span class="label">{label}</span>
      {entries.map(([name, value]) => (
        <span key={name} class="mono">
          {shorten(name)} <b>{readable(name, value)}</b>
        </span>
      ))}
    </div>
  );
}

function Effects({ steps }: { steps: TraceStep[] }) {
  if (steps.length === 0) return null;
  return (
    <ul class="effects">
      {steps.map((step, i) => (
        <li key={i}>
          <Effect step={step} />
        </li>
      ))}
    </ul>
  );
}

function Effect({ step }: { step: TraceStep }) {
  switch (step.step) {
    case "extract":
    case "header_added":
      return (
        <Values
          values={step.fields as Record<string, string>}
          label={`${step.step === "extract" ? "" : "+ "}${step.header}`}
        />
      );
    case "header_removed":
      return <span class="mono">− {String(step.header)}</span>;
    case "select": {
      const key = Object.entries(step.key as Record<string, string>).map(
        ([name, value]) => `${shorten(name)} = ${value}`,
      );
      return (
        <span class="mono">
          {key.join(", ")} → <b>{shorten(String(step.next))}</b>
        </span>
      );
    }
    case "changed":
      return (
        <span class="mono">
          {shorten(String(step.field))}: {readable(String(step.field), String(step.from))} →{" "}
          <b>{readable(String(step.field), String(step.to))}</b>
        </span>
      );
    case "checksum":
      return (
        <span class="mono">
          {String(step.field)} <b>{String(step.found)}</b> is {step.correct ? "correct" : `wrong: ${step.computed}`}
        </span>
      );
    case "deparse": {
      const headers = step.headers as { header: string; bytes: number }[];
      return <span class="mono">{headers.map((one) => `${one.header} (${one.bytes})`).join(", ")}</span>;
    }
    case "extern": {
      const args = Object.entries((step.args ?? {}) as Record<string, string>).map(
        ([name, value]) => `${name} = ${shorten(value)}`,
      );
      return (
        <span class="mono quiet">
          {String(step.call).replaceAll("_", " ")} {args.join(", ")}
        </span>
      );
    }
    default: {
      const { step: name, ...members } = step;
      return (
        <span class="mono quiet">
          {name.replaceAll("_", " ")} {JSON.stringify(members)}
        </span>
      );
    }
  }
}

function shorten(name: string): string {
  return name
    .replace(/^(FrontageIngress|FrontageEgress|FrontageParser)\./, "")
    .replace(/^(hdr|meta|userMetadata|scalars)\./, "");
}

/** Addresses in the notation of people. */
function readable(name: string, value: string): string {
  if (/^0x[0-9a-f]{8}$/.test(value) && /(ipv4|arp|vip|dip|src|dst)/.test(name) && !/seq|ack|hash/.test(name)) {
    const number = Number.parseInt(value, 16);
    return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
  }
  if (/^0x[0-9a-f]{12}$/.test(value)) return (value.slice(2).match(/../g) ?? []).join(":");
  if (/^0x[0-9a-f]{32}$/.test(value))
    return (value.slice(2).match(/.{4}/g) ?? []).map((part) => part.replace(/^0{1,3}/, "")).join(":");
  if (/^0x[0-9a-f]{4}$/.test(value) && /port|vip_id|sid/.test(name)) return String(Number.parseInt(value, 16));
  return value;
}

function download(passes: Pass[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(passes, null, 2)], { type: "application/json" }));
  link.download = "packet.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
