import { slowFromMs } from "./capacity-pool.ts"

/** How long a slow endpoint is remembered that has nothing under way, ms. */
const memory = 60 * 60_000

/** Endpoints that were slow and have nothing under way: how slow each was. */
export class SlowEndpoints {
  readonly #slow = new Map<string, { readonly usual: number; readonly at: number }>()

  has(key: string): boolean {
    return this.#slow.has(key)
  }

  /** How long it took, ms; undefined for one that was quick, or of which nothing is known. */
  ewmaMsOf(key: string): number | undefined {
    return this.#slow.get(key)?.usual
  }

  /** Remembers how long one took lately, ms, where that was slow. */
  remember(key: string, usual: number | undefined): void {
    if (usual !== undefined && usual >= slowFromMs)
      this.#slow.set(key, { usual, at: performance.now() })
  }

  /** It has something under way again. */
  forget(key: string): void {
    this.#slow.delete(key)
  }

  /** Forgets those of which nothing was heard for long. */
  tick(now: number): void {
    for (const [key, { at }] of this.#slow) if (now - at > memory) this.#slow.delete(key)
  }
}
