// SPDX-License-Identifier: Apache-2.0
// The frame around views.
import type { ComponentChildren } from "preact";
import { clock } from "../state/clock";
import { overview, stream } from "../state/live";
import { route } from "../state/route";
import { logOut, user } from "../state/session";
import { theme, toggleTheme } from "../state/theme";
import { Age } from "./parts";

const VIEWS: [string, string, string][] = [
  ["overview", "Overview", "M3 12h4l3-8 4 16 3-8h4"],
  ["vips", "VIPs", "M4 6h16M4 12h16M4 18h10"],
  ["flow", "Flow", "M4 12h10m-4-5 5 5-5 5M19 5v14"],
  ["packet", "Packet", "M3 8l9-5 9 5v8l-9 5-9-5zm9 5v8m0-8L3 8m9 5 9-5"],
  ["sites", "Sites", "M12 21s-7-6.5-7-11a7 7 0 0 1 14 0c0 4.500-7 11-7 11zm0-9a2 2 0 1 0 0-4 2 2 0 0 0 0 4"],
  ["handoff", "Hand-off", "M4 7h11m-3-3 3 3-3 3M20 17H9m3 3-3-3 3-3"],
  ["history", "History", "M4 5v5h5M4.500 10a8 8 0 1 1-.5 4M12 8v5l3 2"],
];

function Connection() {
  const { state, reason, retryAt } = stream.value;
  const wait = Math.max(0, Math.ceil((retryAt - clock.value) / 1000));
  const text =
    state === "live"
      ? "events: live"
      : state === "connecting"
        ? "events: connecting …"
        : `events lost: retry in ${wait} s`;
  return (
    <span class={`connection ${state}`} role="status" title={reason ?? undefined}>
      {text}
    </span>
  );
}

export function Layout({ children }: { children: ComponentChildren }) {
  const caller = user.value;
  const view = route.value.view;
  const other = theme.value === "dark" ? "light" : "dark";
  return (
    <div class="layout">
      <button type="button" class="skip" onClick={focusMain}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href="#/" aria-label="Frontage: overview">
          <img src="./icon.svg" alt="" width="24" height="24" />
          <span>Frontage</span>
        </a>
        <div class="status">
          <Age of={overview.state.value} />
          <Connection />
        </div>
        <div class="who">
          <span class="caller" title={caller === null ? "" : `from ${caller.origin}`}>
            {caller?.name} <small>{caller?.role}</small>
          </span>
          <button
            type="button"
            class="icon"
            onClick={toggleTheme}
            aria-label={`Use ${other} colours`}
            title={`Use ${other} colours`}
          >
            <svg viewBox="0 0 24 24" aria-hidden="true">
              <path d="M12 3a9 9 0 1 0 9 9c0-.5 0-1-.1-1.400A6 6 0 0 1 12.500 3z" />
            </svg>
          </button>
          <button type="button" onClick={() => logOut()}>
            Log out
          </button>
        </div>
      </header>
      <nav aria-label="Views">
        {VIEWS.map(([name, title, path]) => (
          <a key={name} href={`#/${name}`} aria-current={view === name ? "page" : undefined}>
            <svg viewBox="0 0 24 24" aria-hidden="true">
              <path d={path} />
            </svg>
            <span>{title}</span>
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}
