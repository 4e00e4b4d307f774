// SPDX-License-Identifier: Apache-2.0
// Objects that are read again and again while somebody looks at them.
import { type Signal, signal } from "@preact/signals";
import { ApiError, get } from "../api/client";

export interface Polled<T> {
  /** The last value; null before the first. */
  value: T | null;
  /** When it arrived, in milliseconds. */
  at: number;
  /** Why the last attempt failed. */
  error: string | null;
}

/** Reads a path until it is stopped. After a failure, the last value stays. */
export class Poller<T> {
  readonly state: Signal<Polled<T>> = signal({ value: null, at: 0, error: null });
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = true;

  constructor(
    private readonly path: string,
    private readonly interval: number,
    private readonly onValue: (value: T) => void = () => {},
  ) {}

  start(): this {
    if (this.stopped) {
      this.stopped = false;
      void this.turn();
    }
    return this;
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private async turn(): Promise<void> {
    const began = performance.now();
    await this.read();
    if (!this.stopped) {
      const wait = document.hidden ? 5_000 : Math.max(50, this.interval - (performance.now() - began));
      this.timer = setTimeout(() => void this.turn(), wait);
    }
  }

  /** Reads the path now. */
  async read(): Promise<void> {
    try {
      const value = await get<T>(this.path);
      if (this.stopped) return;
      this.onValue(value);
      this.state.value = { value, at: Date.now(), error: null };
    } catch (error) {
      const message = error instanceof ApiError ? error.message : String(error);
      this.state.value = { ...this.state.value, error: message };
    }
  }
}
