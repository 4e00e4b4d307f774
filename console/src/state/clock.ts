// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";

/** The time in milliseconds, four times a second, for ages. */
export const clock = signal(Date.now());

setInterval(() => {
  if (!document.hidden) clock.value = Date.now();
}, 250);
