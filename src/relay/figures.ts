import { HistogramCells } from "../metrics/cells.ts"
import { counter, type Family, gauge } from "../metrics/family.ts"
import type { Waiting } from "./outbox-table.ts"

/** Delays from the insertion of a row to its event, ms. */
const delayMs = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 15_000, 60_000, 600_000]

/** What a relay counts. */
export class RelayFigures {
  readonly #delay = new HistogramCells({}, delayMs, 0.001)
  #published = 0
  #setAside = 0
  #removed = 0
  waiting: Waiting | undefined
  isPublishing = false

  published(waitedMs: number): void {
    this.#published++
    this.#delay.observe(waitedMs)
  }

  setAside(): void {
    this.#setAside++
  }

  removed(rows: number): void {
    this.#removed += rows
  }

  families(): ReadonlyArray<Family> {
    const { waiting } = this
    return [
      counter("petrel.outbox.rows_published", "Rows whose event is stored.", this.#published),
      counter(
        "petrel.outbox.rows_set_aside",
        "Rows set aside, as they can never be published.",
        this.#setAside
      ),
      counter("petrel.outbox.rows_removed", "Published rows that were removed.", this.#removed),
      {
        ...{ name: "petrel.outbox.delay", type: "histogram", unit: "s" },
        help: "From the insertion of a row to its event; the transaction's time is part of it.",
        samples: this.#delay.samples(false)
      },
      gauge(
        "petrel.outbox.publishing",
        "1 if this relay publishes, 0 if it stands by or has no database.",
        this.isPublishing ? 1 : 0
      ),
      ...(waiting === undefined
        ? []
        : [
            gauge("petrel.outbox.pending_rows", "Rows that wait, up to 100,000.", waiting.pending),
            gauge(
              "petrel.outbox.oldest_pending",
              "How long the oldest row has waited.",
              waiting.oldestMs / 1_000,
              "s"
            ),
            gauge(
              "petrel.outbox.set_aside_rows",
              "Rows set aside that nobody has released or discarded.",
              waiting.setAside
            )
          ])
    ]
  }
}
