import { timers } from "../../time/timers.ts"
import { slowFromMs } from "./tenant-capacity.ts"

/** How long a slow endpoint with nothing in flight is remembered, ms. */
const rememberedMs = 60 * 60_000

/** Slow endpoints with nothing in flight, and how slow each was. */
export class SlowEndpoints {
  readonly #slow = new Map<string, { readonly ewmaMs: number; readonly at: number }>()

  has(key: string): boolean {
    return this.#slow.has(key)
  }

  /** Returns its moving average, ms; undefined for an endpoint that was quick or is unknown. */
  ewmaMsOf(key: string): number | undefined {
    return this.#slow.get(key)?.ewmaMs
  }

  /** Remembers an endpoint's moving average, ms, if it was slow. */
  remember(key: string, ewmaMs: number | undefined): void {
    if (ewmaMs !== undefined && ewmaMs >= slowFromMs)
      this.#slow.set(key, { ewmaMs, at: timers.monotonicMs() })
  }

  /** Forgets an endpoint that has a lane again. */
  forget(key: string): void {
    this.#slow.delete(key)
  }

  /** Forgets endpoints that were not used for an hour. */
  tick(now: number): void {
    for (const [key, { at }] of this.#slow) if (now - at > rememberedMs) this.#slow.delete(key)
  }
}
