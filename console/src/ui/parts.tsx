// SPDX-License-Identifier: Apache-2.0
// Small parts of views.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { clock } from "../state/clock";
import { age } from "../state/format";
import type { Polled } from "../state/poll";

export type Tone = "good" | "warn" | "bad" | "idle" | "info";

/** A word with a coloured dot; the word alone carries the meaning. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A titled part of a view. */
export function Panel(props: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`panel ${props.class ?? ""}`} aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {props.aside !== undefined && <div class="aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** A number with its name. */
export function Stat(props: { name: string; value: string; note?: ComponentChildren; tone?: Tone }) {
  return (
    <div class={`stat ${props.tone ?? ""}`}>
      <dt>{props.name}</dt>
      <dd>
        <span class="value">{props.value}</span>
        {props.note !== undefined && <span class="note">{props.note}</span>}
      </dd>
    </div>
  );
}

/** A bar from 0 to 1, with a mark for the fair share. */
export function Bar(props: { share: number; mark?: number; tone?: string }) {
  const width = `${Math.max(0, Math.min(1, props.share)) * 100}%`;
  return (
    <span class={`bar ${props.tone ?? ""}`} aria-hidden="true">
      <i style={{ width }} />
      {props.mark !== undefined && props.mark > 0 && <b style={{ left: `${Math.min(1, props.mark) * 100}%` }} />}
    </span>
  );
}

/** A line of recent values. */
export function Sparkline({ values, label }: { values: (number | null)[]; label: string }) {
  const known = values.filter((value): value is number => value !== null);
  const most = Math.max(...known, 1e-9);
  const step = values.length > 1 ? 100 / (values.length - 1) : 0;
  const points = values
    .map((value, i) => (value === null ? null : `${(i * step).toFixed(1)},${(22 - (value / most) * 20).toFixed(1)}`))
    .filter((point) => point !== null)
    .join(" ");
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points} />
    </svg>
  );
}

/** How old the numbers are, and why they are not newer. */
export function Age<T>({ of }: { of: Polled<T> }) {
  if (of.value === null) return <span class="age">{of.error ?? "loading …"}</span>;
  const seconds = (clock.value - of.at) / 1000;
  const stale = seconds > 3 || of.error !== null;
  return (
    <span class={`age ${stale ? "stale" : ""}`} title={of.error ?? undefined}>
      {stale ? `numbers are ${age(seconds)} old${of.error === null ? "" : `: ${of.error}`}` : "live"}
    </span>
  );
}

/** Dims numbers that are no longer current. */
export function staleness<T>(of: Polled<T>): string {
  return of.value !== null && (clock.value - of.at) / 1000 > 3 ? "is-stale" : "";
}

/** A message about the last action. */
export function Message({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <p class={`message ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </p>
  );
}

/** A question before an action. */
export function Confirm(props: {
  title: string;
  action: string;
  children: ComponentChildren;
  onConfirm: () => void;
  onCancel: () => void;
  danger?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={props.title} onClose={props.onCancel}>
      <h2>{props.title}</h2>
      {props.children}
      <div class="buttons">
        <button type="button" class={props.danger ? "danger" : "primary"} onClick={props.onConfirm}>
          {props.action}
        </button>
        <button type="button" onClick={props.onCancel}>
          Cancel
        </button>
      </div>
    </dialog>
  );
}

/** A line of text in a form. */
export function TextField(props: {
  label: ComponentChildren;
  name: string;
  value: string;
  onChange: (value: string) => void;
  numeric?: boolean;
  required?: boolean;
}) {
  return (
    <label>
      {props.label}
      <input
        class="mono"
        name={props.name}
        inputMode={props.numeric ? "numeric" : undefined}
        value={props.value}
        required={props.required}
        autocomplete="off"
        onInput={(event) => props.onChange(event.currentTarget.value)}
      />
    </label>
  );
}

/** A field that filters a list. */
export function Search(props: { label: string; hint: string; value: string; onChange: (value: string) => void }) {
  return (
    <input
      type="search"
      placeholder={props.hint}
      aria-label={props.label}
      value={props.value}
      onInput={(event) => props.onChange(event.currentTarget.value)}
    />
  );
}

/** The head of a row: a name, and what it means. */
export function Term({ name, meaning }: { name: string; meaning: string | undefined }) {
  return (
    <th scope="row">
      <span class="mono">{name}</span>
      <small class="block">{meaning ?? ""}</small>
    </th>
  );
}

/** A table that scrolls sideways within its panel if it has to. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: not a group of fields
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
    <div class="scroll" role="group" tabIndex={0} aria-label={label}>
      {children}
    </div>
  );
}

/** The heading of a column of numbers. */
export function Head({ title, children }: { title?: string; children: ComponentChildren }) {
  return (
    <th scope="col" class="n" title={title}>
      {children}
    </th>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
