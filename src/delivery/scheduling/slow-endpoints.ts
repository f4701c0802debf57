import { slowFromMs } from "./capacity-pool.ts"

/** How long a slow endpoint with nothing in flight is remembered, ms. */
const memory = 60 * 60_000

/** Slow endpoints with nothing in flight, and how slow each was. */
export class SlowEndpoints {
  readonly #slow = new Map<string, { readonly usual: number; readonly at: number }>()

  has(key: string): boolean {
    return this.#slow.has(key)
  }

  /** Returns its moving average, ms; undefined for an endpoint that was quick or is unknown. */
  ewmaMsOf(key: string): number | undefined {
    return this.#slow.get(key)?.usual
  }

  /** Remembers an endpoint's moving average, ms, if it was slow. */
  remember(key: string, usual: number | undefined): void {
    if (usual !== undefined && usual >= slowFromMs)
      this.#slow.set(key, { usual, at: performance.now() })
  }

  /** Forgets an endpoint that has a lane again. */
  forget(key: string): void {
    this.#slow.delete(key)
  }

  /** Forgets endpoints that were not used for an hour. */
  tick(now: number): void {
    for (const [key, { at }] of this.#slow) if (now - at > memory) this.#slow.delete(key)
  }
}
