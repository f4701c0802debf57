import { Context } from "effect"
import { CounterCells } from "./cells.ts"
import type { NumberFamily } from "./family.ts"

/** The bounds by which a console refuses requests, or closes connections. */
const bounds = [
  "bodies",
  "connections",
  "history",
  "idempotency-keys",
  "jobs",
  "maxEndpoints",
  "maxTokens",
  "nats-rate",
  "nats-requests",
  "pace",
  "pages",
  "requests",
  "searches",
  "streams",
  "turns"
] as const
export type Bound = (typeof bounds)[number]

/** Counts what a console refuses because a bound is reached. */
export class RefusalCells {
  readonly #cells = new CounterCells(bounds.map((bound) => ({ bound })))

  note(bound: Bound): void {
    this.#cells.add(bounds.indexOf(bound))
  }

  family(): NumberFamily {
    return {
      name: "petrel.refused.requests",
      help: "Requests and connections that the console refused because a bound was reached.",
      type: "counter",
      samples: this.#cells.samples(false)
    }
  }
}

/** What this console refuses. (Default: counts that nobody reads) */
export const RefusedRequests = Context.Reference<RefusalCells>("petrel/metrics/RefusedRequests", {
  defaultValue: () => new RefusalCells()
})
