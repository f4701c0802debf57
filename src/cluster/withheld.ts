import { timers } from "../time/timers.ts"
import type { Heartbeat } from "./roster.ts"

/** A worker that died does not answer either, and its leases last for a TTL. */
const afterTtls = 2

interface Withheld {
  readonly owner: string
  /** When its owner was first asked in vain, ms of the monotonic clock. */
  readonly since: number
  isSaid: boolean
}

/**
 * The partitions whose live owners do not answer when they are asked for them: their version does not
 * know how, or the user of one side may not use the subjects.
 */
export class WithheldPartitions {
  readonly #afterMs: number
  readonly #all = new Map<number, Withheld>()

  /** @param ttl of a lease, ms. */
  constructor(ttl: number) {
    this.#afterMs = afterTtls * ttl
  }

  /** Notes that an owner did not answer. Returns true once, when that has lasted. */
  unanswered(partition: number, owner: string): boolean {
    const before = this.#all.get(partition)
    if (before?.owner !== owner) {
      this.#all.set(partition, { owner, since: timers.monotonicMs(), isSaid: false })
      return false
    }
    if (before.isSaid || !this.#lasts(before)) return false
    before.isSaid = true
    return true
  }

  /** Keeps those alone that are missing still. */
  keep(missing: ReadonlyArray<number>): void {
    for (const partition of this.#all.keys())
      if (!missing.includes(partition)) this.#all.delete(partition)
  }

  answered(partition: number): void {
    this.#all.delete(partition)
  }

  /** Returns those that have been withheld for a while. */
  readonly list = (): NonNullable<Heartbeat["withheld"]> =>
    [...this.#all]
      .filter(([, withheld]) => this.#lasts(withheld))
      .map(([partition, { owner }]) => ({ partition, owner }))

  #lasts({ since }: Withheld): boolean {
    return timers.monotonicMs() - since >= this.#afterMs
  }
}
