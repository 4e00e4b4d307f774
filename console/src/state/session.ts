// SPDX-License-Identifier: Apache-2.0
// Who uses the console. `logIn` is the only place that decides how.
import { signal } from "@preact/signals";
import { authorize, get } from "../api/client";
import type { Caller, Role } from "../api/schema";

const KEY = "frontage-token";
const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

/** The user; null before the log-in. */
export const user = signal<Caller | null>(null);
/** Why the last log-in failed. */
export const loginError = signal<string | null>(null);

/** Logs in with a token. It stays in this tab until it is closed. */
export async function logIn(token: string): Promise<boolean> {
  authorize(token, () => logOut("the controller no longer accepts the token: log in again"));
  try {
    const caller = await get<Caller>("me");
    sessionStorage.setItem(KEY, token);
    loginError.value = null;
    user.value = caller;
    return true;
  } catch (error) {
    logOut(error instanceof Error ? error.message : String(error));
    return false;
  }
}

/** Forgets the token. */
export function logOut(reason: string | null = null): void {
  sessionStorage.removeItem(KEY);
  authorize(null, () => {});
  loginError.value = reason;
  user.value = null;
}

/** Logs in with the token of a link (`#token=...`), which is removed from the address, or with that of this tab. */
export async function resume(): Promise<void> {
  const found = /^#token=([A-Za-z0-9._~+/=-]+)/.exec(location.hash);
  if (found?.[1]) {
    history.replaceState(null, "", `${location.pathname}#/`);
  }
  const token = found?.[1] ?? sessionStorage.getItem(KEY);
  if (token) {
    await logIn(token);
  }
}

/** Returns true if the user has at least this role. */
export function may(role: Role): boolean {
  return user.value !== null && RANK[user.value.role] >= RANK[role];
}
