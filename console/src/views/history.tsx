// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { ask, change, get, getText } from "../api/client";
import type { Change, ChangeWithSteps, Operation, Plan, Step } from "../api/schema";
import { time, whole } from "../state/format";
import { revision } from "../state/live";
import { may } from "../state/session";
import { Badge, Confirm, Empty, Message, Panel, type Tone } from "../ui/parts";

const EFFECTS: Record<string, Tone> = { none: "idle", new: "info", some: "warn", breaks: "bad" };
const NOTICED: Record<string, string> = {
  none: "no connections affected",
  new: "new connections",
  some: "some connections",
  breaks: "breaks connections",
};

interface Note {
  tone: Tone;
  text: string;
}

export function HistoryView() {
  const [changes, setChanges] = useState<Change[] | null>(null);
  const [note, setNote] = useState<Note | null>(null);
  const [undoing, setUndoing] = useState<Change | null>(null);
  const stamp = revision.value;
  useEffect(() => {
    let current = true;
    get<Change[]>("history?limit=50")
      .then((found) => current && setChanges(found))
      .catch(
        (error: unknown) =>
          current && setNote({ tone: "bad", text: String(error instanceof Error ? error.message : error) }),
      );
    return () => {
      current = false;
    };
  }, [stamp, note]);
  const undo = async (one: Change) => {
    setUndoing(null);
    setNote({ tone: "info", text: `undoing change ${one.number} …` });
    try {
      const done = await change<Operation>("POST", `history/${one.number}/undo`);
      setNote({ tone: "good", text: done.changed ?? `change ${one.number} is undone` });
    } catch (error) {
      setNote({ tone: "bad", text: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <div class="view">
      <div class="title">
        <h1>History</h1>
      </div>
      {note !== null && <Message tone={note.tone}>{note.text}</Message>}
      <Panel title="Changes" aside="the newest first">
        {changes === null ? (
          <Empty>loading …</Empty>
        ) : changes.length === 0 ? (
          <Empty>The journal has no changes yet.</Empty>
        ) : (
          <ol class="changes">
            {changes.map((one) => (
              <ChangeRow key={one.number} one={one} onUndo={() => setUndoing(one)} />
            ))}
          </ol>
        )}
      </Panel>
      {may("admin") && <PlanPanel />}
      {undoing !== null && (
        <Confirm
          title={`Undo change ${undoing.number}?`}
          action="Undo"
          danger
          onConfirm={() => void undo(undoing)}
          onCancel={() => setUndoing(null)}
        >
          <p>This restores the configuration before {describe(undoing)}. Cookie keys are not restored.</p>
          <Later changes={(changes ?? []).filter((other) => other.number > undoing.number)} />
        </Confirm>
      )}
    </div>
  );
}

function Later({ changes }: { changes: Change[] }) {
  if (changes.length === 0) return null;
  return (
    <>
      <p>This also undoes the later changes:</p>
      <ul>
        {changes.map((one) => (
          <li key={one.number}>
            {one.number}: {describe(one)}
          </li>
        ))}
      </ul>
    </>
  );
}

function describe(one: Change): string {
  const words = Object.entries(one.arguments)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => (name === "name" || name === "vip" ? String(value) : `${name} ${String(value)}`));
  return [one.verb, ...words].join(" ");
}

function ChangeRow({ one, onUndo }: { one: Change; onUndo: () => void }) {
  const [open, setOpen] = useState(false);
  const [steps, setSteps] = useState<Step[] | null>(null);
  const toggle = async () => {
    setOpen(!open);
    if (steps === null) setSteps((await get<ChangeWithSteps>(`history/${one.number}`)).steps);
  };
  const good = one.result === "installed" || one.result === "written";
  return (
    <li>
      <div class="change">
        <button type="button" class="toggle" aria-expanded={open} onClick={() => void toggle()}>
          <span class="number">{one.number}</span>
          <span class="what">{describe(one)}</span>
        </button>
        <span class="when">
          <time dateTime={one.time}>{time(one.time)}</time>
          <span>
            {one.author} <small>{one.origin}</small>
          </span>
        </span>
        <Badge tone={one.result === null ? "info" : good ? "good" : "bad"}>{one.result ?? "in progress"}</Badge>
        {may("operator") && one.before !== null && (
          <button type="button" class="small" aria-label={`Undo change ${one.number}`} onClick={onUndo}>
            Undo
          </button>
        )}
      </div>
      {open && (steps === null ? <Empty>loading …</Empty> : <Steps steps={steps} />)}
    </li>
  );
}

const SIGNS = { add: "+", change: "~", remove: "−" };

function Steps({ steps }: { steps: Step[] }) {
  if (steps.length === 0) return <Empty>No changes for the switches.</Empty>;
  return (
    <ul class="diff">
      {steps.map((step) => (
        <li key={`${step.action} ${step.kind} ${step.name}`} class={step.action}>
          <span class="sign">{SIGNS[step.action]}</span>
          <span>
            <b>
              {step.kind} {step.name}
            </b>{" "}
            <Badge tone={EFFECTS[step.effect] ?? "idle"}>{NOTICED[step.effect] ?? step.effect}</Badge>{" "}
            <small>{step.why}</small>
            {step.fields.map((field) => (
              <code key={field.name} class="block">
                {field.name}: {field.before ?? "–"} → <b>{field.after ?? "–"}</b>
              </code>
            ))}
          </span>
        </li>
      ))}
    </ul>
  );
}

function PlanPanel() {
  const [text, setText] = useState<string | null>(null);
  const [plan, setPlan] = useState<Plan | null>(null);
  const [note, setNote] = useState<Note | null>(null);
  const attempt = async (what: string, run: () => Promise<void>) => {
    setNote({ tone: "info", text: `${what} …` });
    try {
      await run();
      setNote(null);
    } catch (error) {
      setNote({ tone: "bad", text: error instanceof Error ? error.message : String(error) });
    }
  };
  const load = () =>
    attempt("reading the configuration", async () => {
      setText(await getText("configuration"));
      setPlan(null);
    });
  const preview = () => attempt("planning", async () => setPlan(await ask<Plan>("plans", { text, source: "console" })));
  const apply = () =>
    attempt("installing", async () => {
      await change<Operation>("POST", "plans/apply", plan);
      setPlan(null);
      setText(null);
    });
  return (
    <Panel
      title="Plan a configuration"
      aside={
        <button type="button" class="small" onClick={() => void load()}>
          {text === null ? "Edit the configuration" : "Start again"}
        </button>
      }
    >
      {note !== null && <Message tone={note.tone}>{note.text}</Message>}
      {text === null ? (
        <Empty>Shows what an edited configuration would change, before it is installed.</Empty>
      ) : (
        <>
          <textarea
            class="mono"
            aria-label="Configuration"
            rows={14}
            spellcheck={false}
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setPlan(null);
            }}
          />
          <div class="buttons">
            <button type="button" class="primary" onClick={() => void preview()}>
              Plan
            </button>
            {plan !== null && (
              <button type="button" class="danger" onClick={() => void apply()} disabled={plan.steps.length === 0}>
                Install this plan
              </button>
            )}
          </div>
          {plan !== null && <PlanResult plan={plan} />}
        </>
      )}
    </Panel>
  );
}

function PlanResult({ plan }: { plan: Plan }) {
  return (
    <>
      <Steps steps={plan.steps} />
      {plan.without_servers.length > 0 && (
        <Message tone="bad">Without an active server: {plan.without_servers.join(", ")}</Message>
      )}
      <p>
        {Object.entries(plan.switches).map(([name, one]) => (
          <span key={name} class="block">
            {name}: {whole(one.insert)} inserts, {whole(one.modify)} modifies, {whole(one.delete)} deletes
          </span>
        ))}
      </p>
    </>
  );
}
