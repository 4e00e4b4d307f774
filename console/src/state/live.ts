// SPDX-License-Identifier: Apache-2.0
// The sample of the fleet, and the stream of events.
import { signal } from "@preact/signals";
import { openEvents } from "../api/client";
import type { Overview } from "../api/schema";
import { EventParser, type ServerEvent } from "../api/sse";
import { Poller } from "./poll";
import { Meters, Series } from "./rates";

const INTERVAL = 1_000;
const FIRST_PAUSE = 500;
const LAST_PAUSE = 10_000;
const KEPT_EVENTS = 100;
/** The controller sends at least a comment this often, with a margin. */
const SILENCE = 40_000;

export interface Happening {
  at: number;
  kind: string;
  data: Record<string, unknown>;
}

/** The state of the stream of events. */
export interface Stream {
  state: "connecting" | "live" | "lost";
  /** Why it was lost. */
  reason: string | null;
  /** When the next attempt is made, in milliseconds. */
  retryAt: number;
}

export const stream = signal<Stream>({ state: "connecting", reason: null, retryAt: 0 });
export const happenings = signal<Happening[]>([]);
/** Grows when something changed that views have read. */
export const revision = signal(0);

export const meters = new Meters();
export const throughput = new Series([], 300);
export const arrivals = new Series([], 300);

/** The largest VIPs that charts show by name. */
const CHARTED = 8;

function take(sample: Overview): void {
  for (const vip of sample.vips) {
    meters.add(`up:${vip.name}`, sample.time, vip.up.packets);
    meters.add(`down:${vip.name}`, sample.time, vip.down.bytes);
    meters.add(`flows:${vip.name}`, sample.time, vip.new_flows);
  }
  for (const [reason, count] of Object.entries(sample.drops)) meters.add(`drop:${reason}`, sample.time, count.packets);
  for (const [outcome, count] of Object.entries(sample.outcomes)) {
    meters.add(`outcome:${outcome}`, sample.time, count.packets);
  }
  for (const one of sample.switches) {
    if (one.packets !== null) meters.add(`switch:${one.name}`, sample.time, one.packets);
    if (one.dropped !== null) meters.add(`dropped:${one.name}`, sample.time, one.dropped);
  }
  const names = [...sample.vips]
    .sort((a, b) => b.down.bytes - a.down.bytes || a.name.localeCompare(b.name))
    .slice(0, CHARTED)
    .map((vip) => vip.name)
    .sort();
  const bits = names.map((name) => meters.rate(`down:${name}`, 2));
  throughput.add(
    sample.time,
    names,
    bits.map((rate) => (rate === null ? null : rate * 8)),
  );
  arrivals.add(
    sample.time,
    names,
    names.map((name) => meters.rate(`flows:${name}`, 2)),
  );
}

export const overview = new Poller<Overview>("samples", INTERVAL, take);

let running: AbortController | null = null;

/** Starts reading samples and events. */
export function startLive(): void {
  overview.start();
  if (running === null) {
    running = new AbortController();
    void follow(running.signal);
  }
}

/** Stops both. */
export function stopLive(): void {
  overview.stop();
  running?.abort();
  running = null;
}

function note(event: ServerEvent): void {
  let data: Record<string, unknown> = {};
  try {
    data = JSON.parse(event.data) as Record<string, unknown>;
  } catch {
    return;
  }
  happenings.value = [{ at: Date.now(), kind: event.kind, data }, ...happenings.value].slice(0, KEPT_EVENTS);
  revision.value++;
}

async function follow(signal: AbortSignal): Promise<void> {
  let lastId: string | null = null;
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    let reason = "the controller ended the stream";
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
    };
    try {
      alive();
      const body = await openEvents(lastId, AbortSignal.any([signal, silence.signal]));
      const reader = body.getReader();
      const decoder = new TextDecoder();
      const parser = new EventParser();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        alive();
        if (stream.value.state !== "live") stream.value = { state: "live", reason: null, retryAt: 0 };
        pause = FIRST_PAUSE;
        for (const event of parser.push(decoder.decode(part.value, { stream: true }))) {
          lastId = event.id ?? lastId;
          if (event.kind === "disconnected") reason = "the controller disconnected this slow client";
          if (event.data !== "") note(event);
        }
      }
    } catch (error) {
      reason = error instanceof Error && error.name !== "TypeError" ? error.message : "the controller does not answer";
    }
    clearTimeout(timer);
    if (signal.aborted) return;
    stream.value = { state: "lost", reason, retryAt: Date.now() + pause };
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LAST_PAUSE);
  }
}
