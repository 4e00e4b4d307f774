// SPDX-License-Identifier: Apache-2.0
// The view, from the fragment of the address: `#/vips/shop`.
import { signal } from "@preact/signals";

export interface Route {
  view: string;
  argument: string | null;
}

/** Reads a fragment. */
export function parseRoute(hash: string): Route {
  const [view, argument] = hash.replace(/^#\/?/, "").split("/");
  return { view: view || "overview", argument: argument ? decodeURIComponent(argument) : null };
}

export const route = signal<Route>(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
  scrollTo(0, 0);
});
