import type { SpeedClass, TenantCapacity } from "./tenant-capacity.ts"

/** Endpoints whose backlog waits for body capacity, each once. */
export class CapacityWaiters {
  readonly #waiting = new Set<string>()
  readonly #onCapacity: (key: string) => void

  /** @param onCapacity called when an endpoint has capacity again. */
  constructor(onCapacity: (key: string) => void) {
    this.#onCapacity = onCapacity
  }

  /** Puts an endpoint in line, unless it has capacity or is in line already. */
  await(key: string, capacity: TenantCapacity, speed: SpeedClass): void {
    if (capacity.bytesFor(speed) > 0 || this.#waiting.has(key)) return
    const waiter = {
      turn: () => {
        if (capacity.bytesFor(speed) === 0) {
          capacity.wait(speed, 1, waiter)
          return false
        }
        this.#waiting.delete(key)
        this.#onCapacity(key)
        return true
      }
    }
    this.#waiting.add(key)
    capacity.wait(speed, 1, waiter)
  }
}
