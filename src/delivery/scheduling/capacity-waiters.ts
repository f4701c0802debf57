import type { CapacityPool, SpeedClass } from "./capacity-pool.ts"

/** Endpoints whose backlog waits for body capacity, each once. */
export class CapacityWaiters {
  readonly #waiting = new Set<string>()
  readonly #pool: CapacityPool
  readonly #onCapacity: (key: string) => void

  /** @param onCapacity called when an endpoint has capacity again. */
  constructor(pool: CapacityPool, onCapacity: (key: string) => void) {
    this.#pool = pool
    this.#onCapacity = onCapacity
  }

  /** Puts an endpoint in line, unless it has capacity or is in line already. */
  await(key: string, speed: SpeedClass): void {
    const pool = this.#pool
    if (pool.bytesFor(speed) > 0 || this.#waiting.has(key)) return
    const waiter = {
      turn: () => {
        if (pool.bytesFor(speed) === 0) {
          pool.wait(speed, 1, waiter)
          return false
        }
        this.#waiting.delete(key)
        this.#onCapacity(key)
        return true
      }
    }
    this.#waiting.add(key)
    pool.wait(speed, 1, waiter)
  }
}
