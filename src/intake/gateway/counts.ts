import type { Reconciliation } from "../../domain/reconciliation.ts"
import { CappedCells, HistogramCells } from "../../metrics/cells.ts"
import type { Family } from "../../metrics/family.ts"
import { counter, gauge } from "../../metrics/family.ts"

/** What became of a request. */
export const outcomes = [
  "taken",
  "repeated",
  "quarantined",
  "handshake",
  "unauthorized",
  "unknown-source",
  "unsupported",
  "too-large",
  "rate-limited",
  "overloaded",
  "broken-off",
  "broker-unavailable",
  "not-verifiable"
] as const
export type Outcome = (typeof outcomes)[number]

/** Sources with series of their own. */
const maxSources = 200

const durationsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500]

class SourceCells {
  readonly name: string
  readonly #counts = new Float64Array(outcomes.length)

  constructor(name: string) {
    this.name = name
  }

  add(outcome: Outcome): void {
    const index = outcomes.indexOf(outcome)
    this.#counts[index] = (this.#counts[index] ?? 0) + 1
  }

  samples() {
    return outcomes.flatMap((outcome, index) => {
      const value = this.#counts[index] ?? 0
      return value === 0 ? [] : [{ labels: { source: this.name, outcome }, value }]
    })
  }
}

const findings = ["present", "fetched", "asked", "not-had", "unknown", "broken-off"] as const

class ReconciledCells {
  readonly name: string
  readonly #counts = new Float64Array(findings.length)

  constructor(name: string) {
    this.name = name
  }

  add({ asked, fetched, missing, present, tooOld }: Reconciliation, isBroken: boolean): void {
    const found = [present, fetched, asked, missing - fetched - asked, tooOld, isBroken ? 1 : 0]
    for (const [index, count] of found.entries())
      this.#counts[index] = (this.#counts[index] ?? 0) + count
  }

  samples() {
    return findings.map((found, index) => ({
      labels: { source: this.name, found },
      value: this.#counts[index] ?? 0
    }))
  }
}

/** Counts what a gateway does. */
export class GatewayCounts {
  readonly #sources = new CappedCells(maxSources, (name) => new SourceCells(name))
  readonly #taken = new HistogramCells({ result: "taken" }, durationsMs, 0.001)
  readonly #refused = new HistogramCells({ result: "refused" }, durationsMs, 0.001)
  readonly #reconciled = new CappedCells(maxSources, (name) => new ReconciledCells(name))
  underWay = 0
  #closed = 0
  /** Asked for the connections that there are. */
  connections = () => ({ strangers: 0, known: 0, held: 0 })

  /** Notes that a connection lost its place to another one. */
  closed(): void {
    this.#closed++
  }

  /**
   * @param source as `acme/stripe`; requests for none that there is share one.
   * @param status of the answer.
   * @param ms from the request's head to the answer.
   */
  note(source: string, outcome: Outcome, status: number, ms: number): void {
    this.#sources.of(source).add(outcome)
    const cells = status < 300 ? this.#taken : this.#refused
    cells.observe(ms)
  }

  /** @param isBroken it was broken off. */
  reconciled(source: string, found: Reconciliation, isBroken: boolean): void {
    this.#reconciled.of(source).add(found, isBroken)
  }

  families(): ReadonlyArray<Family> {
    const { known, strangers } = this.connections()
    const reconciled = [...this.#reconciled.all].flatMap((cells) => cells.samples())
    return [
      {
        name: "petrel.intake.requests",
        help: "Requests of providers, by source and by what became of them.",
        type: "counter",
        samples: [...this.#sources.all].flatMap((cells) => cells.samples())
      },
      {
        name: "petrel.intake.duration",
        help: "From the head of a request to its answer.",
        unit: "s",
        type: "histogram",
        samples: [...this.#taken.samples(false), ...this.#refused.samples(false)]
      },
      gauge("petrel.intake.under_way", "Requests under way.", this.underWay),
      {
        ...gauge(
          "petrel.intake.connections",
          "Connections of clients, by whether something verified has come by them.",
          0
        ),
        samples: [
          { labels: { verified: "no" }, value: strangers },
          { labels: { verified: "yes" }, value: known }
        ]
      },
      counter(
        "petrel.intake.connections_closed",
        "Connections that lost their place to others: there were more than a gateway takes.",
        this.#closed
      ),
      {
        name: "petrel.intake.reconciled",
        help: "Events that this gateway has compared with what a provider lists, by source and by what was found; and reconciliations that were interrupted.",
        type: "counter",
        samples: reconciled
      }
    ]
  }
}
