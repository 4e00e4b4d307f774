// SPDX-License-Identifier: Apache-2.0
// Passes of a packet through the pipeline (docs/tracing.md).

export interface Call {
  name: string;
  args: Record<string, string>;
  source?: { file: string; line: number; text: string };
}

export interface TraceStep {
  step: string;
  [member: string]: unknown;
}

export interface Pass {
  packet: number;
  pass: "ingress" | "egress";
  port: number;
  instance: string;
  time_ns: number;
  length: number;
  steps: TraceStep[];
  outcome: { is: string; [member: string]: unknown };
  enqueued: { port: number; instance: string; length: number }[];
}

/** A group of steps: a parser state, a table, or an action with the changes that follow. */
export interface Group {
  kind: "parser" | "table" | "action" | "condition" | "other";
  title: string;
  steps: TraceStep[];
}

const OF_PARSER = new Set(["extract", "select", "parser_error"]);
const FOLLOWING = new Set(["changed", "header_added", "header_removed", "extern"]);

/** Groups steps, so that each change stands below what caused it. */
export function groups(steps: TraceStep[]): Group[] {
  const found: Group[] = [];
  for (const step of steps) {
    const last = found.at(-1);
    if (OF_PARSER.has(step.step) && last?.kind === "parser") last.steps.push(step);
    else if (FOLLOWING.has(step.step) && last !== undefined && last.kind !== "condition") last.steps.push(step);
    else if (step.step === "parser_state") found.push({ kind: "parser", title: String(step.state), steps: [] });
    else if (step.step === "table") found.push({ kind: "table", title: String(step.table), steps: [step] });
    else if (step.step === "action") found.push({ kind: "action", title: String(step.name), steps: [] });
    else if (step.step === "condition") found.push({ kind: "condition", title: "if", steps: [step] });
    else found.push({ kind: "other", title: step.step.replaceAll("_", " "), steps: [step] });
  }
  return found;
}

/** Returns the drop reason's number, if the program counted one. */
export function dropReason(pass: Pass): number | null {
  for (const step of pass.steps) {
    const args = step.args as Record<string, string> | undefined;
    if (step.step === "extern" && step.call === "count" && args !== undefined && /drops$/.test(args.counter ?? "")) {
      return Number(args.index);
    }
  }
  return null;
}

/** Returns what became of a packet, as a sentence. */
export function outcome(pass: Pass, reasons: Record<string, string>): string {
  const { is } = pass.outcome;
  switch (is) {
    case "unicast":
      return `to port ${pass.outcome.port}`;
    case "multicast":
      return `to ${pass.outcome.copies} ports of group ${pass.outcome.group}`;
    case "transmitted":
      return `sent by port ${pass.outcome.port}, ${pass.outcome.length} bytes`;
    case "dropped": {
      const reason = dropReason(pass);
      return reason === null ? "ends here" : `dropped: ${reasons[reason] ?? reason}`;
    }
    default:
      return is.replaceAll("_", " ");
  }
}
