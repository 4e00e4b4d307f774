// SPDX-License-Identifier: Apache-2.0
// Parses server-sent events (HTML standard, section 9.2.6). `EventSource` cannot send the token.

export interface ServerEvent {
  id: string | null;
  kind: string;
  data: string;
}

/** Splits a stream of text into events. */
export class EventParser {
  private buffer = "";

  /** Adds text, and returns the events that it completes. Comments complete events without data. */
  push(text: string): ServerEvent[] {
    this.buffer += text.replaceAll("\r\n", "\n");
    const parts = this.buffer.split("\n\n");
    this.buffer = parts.pop() ?? "";
    return parts.map(parseEvent);
  }
}

function parseEvent(block: string): ServerEvent {
  const event: ServerEvent = { id: null, kind: "", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") event.id = value;
    else if (field === "event") event.kind = value;
    else if (field === "data") data.push(value);
  }
  event.data = data.join("\n");
  return event;
}
