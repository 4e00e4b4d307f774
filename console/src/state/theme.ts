// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system is set, unless the user chooses.
import { signal } from "@preact/signals";

export type Theme = "light" | "dark";
const KEY = "frontage-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = (): Theme | null => {
  const found = localStorage.getItem(KEY);
  return found === "light" || found === "dark" ? found : null;
};

export const theme = signal<Theme>("light");

function apply(): void {
  theme.value = chosen() ?? (system.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme.value;
}

/** Switches to the other one, and remembers it. */
export function toggleTheme(): void {
  localStorage.setItem(KEY, theme.value === "dark" ? "light" : "dark");
  apply();
}

system.addEventListener("change", apply);
apply();
