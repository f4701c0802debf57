import type { CapacityPool, SpeedClass } from "./capacity-pool.ts"

/** Endpoints whose backlog waits for body capacity, each once. */
export class CapacityWaiters {
  readonly #hungry = new Set<string>()
  readonly #room: CapacityPool
  readonly #roomFor: (key: string) => void

  /** @param roomFor called when an endpoint has capacity again. */
  constructor(room: CapacityPool, onCapacity: (key: string) => void) {
    this.#room = room
    this.#roomFor = onCapacity
  }

  /** Puts an endpoint in line, unless it has capacity or is in line already. */
  await(key: string, pace: SpeedClass): void {
    const room = this.#room
    if (room.bytesFor(pace) > 0 || this.#hungry.has(key)) return
    const hungry = {
      turn: () => {
        if (room.bytesFor(pace) === 0) {
          room.wait(pace, 1, hungry)
          return false
        }
        this.#hungry.delete(key)
        this.#roomFor(key)
        return true
      }
    }
    this.#hungry.add(key)
    room.wait(pace, 1, hungry)
  }
}
