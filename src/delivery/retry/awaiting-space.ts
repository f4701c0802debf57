import type { DeadLetterGate } from "./dead-letter-gate.ts"

/**
 * What the owner of a partition knows of deliveries that have ended and wait for space in DEAD as
 * broker schedules.
 *
 * A delivery is noted once its schedule is stored, and forgotten when a scan begins that sees it:
 * the scan wakes it or notes it again. So none is forgotten that no scan has seen.
 */
export class AwaitingSpace {
  /** Tenants that have some. */
  readonly #tenants = new Set<string>()
  /** True where tenants that are not noted may have some: those that a former owner left. */
  #mayBeMore = true

  /** Notes that the schedule of one is stored. */
  note(tenant: string): void {
    this.#tenants.add(tenant)
  }

  /** Notes that a scan did not see all that there is. */
  noteUnseen(): void {
    this.#mayBeMore = true
  }

  /** True where some may go to DEAD now, as far as is known. */
  isDue(gate: Pick<DeadLetterGate, "hasSpace" | "isOpen">): boolean {
    if (!gate.hasSpace) return false
    return this.#mayBeMore || [...this.#tenants].some((tenant) => gate.isOpen(tenant))
  }

  /** Forgets them: a scan is about to begin. */
  forget(): void {
    this.#tenants.clear()
    this.#mayBeMore = false
  }
}
