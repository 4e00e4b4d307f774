// SPDX-License-Identifier: Apache-2.0
import type { Happening } from "../state/live";

/** Returns an event as a sentence. */
export function describeEvent({ kind, data }: Happening): string {
  const text = (name: string) => (data[name] === null || data[name] === undefined ? "" : String(data[name]));
  const error = text("error") ? `: ${text("error")}` : "";
  switch (kind) {
    case "switch":
      return data.removed
        ? `switch ${text("name")} was removed`
        : `switch ${text("name")} is ${text("phase")}, ${text("role")}${error}`;
    case "server":
      return data.removed ? `server ${text("name")} was removed` : `server ${text("name")} is ${text("health")}`;
    case "configuration":
      return text("error") ? `${text("name")} is invalid${error}` : `${text("name")} has changed`;
    case "operation": {
      const named = Object.values((data.arguments ?? {}) as Record<string, unknown>).join(" ");
      const what = `${text("verb")} ${named}`.trim();
      return text("state") === "running" ? `${what} begins` : `${what}: ${text("changed") || text("state")}${error}`;
    }
    case "reset":
      return "some events are missing";
    case "disconnected":
      return `the controller ended the stream: ${text("reason")}`;
    default:
      return kind;
  }
}
