import type { Result } from "./simulation.ts"

type Counted = Omit<Result, "log" | "plan">

interface Row {
  injected: number
  seeds: number
  survived: number
}

/** How often each fault was injected and survived, over many seeds. */
export class FaultTable {
  readonly #rows = new Map<string, Row>()
  seeds = 0
  failed = 0
  #excused = 0
  #virtualMs = 0
  #deliveries = 0
  #requests = 0
  #repeats = 0

  add(result: Counted): void {
    const { deliveries, excused, failures, injected, repeats, requests, virtualMs } = result
    this.seeds++
    if (failures.length > 0) this.failed++
    if (excused > 0) this.#excused++
    this.#virtualMs += virtualMs
    this.#deliveries += deliveries
    this.#requests += requests
    this.#repeats += repeats
    for (const [fault, count] of injected) {
      const row = this.#rows.get(fault) ?? { injected: 0, seeds: 0, survived: 0 }
      row.injected += count
      row.seeds++
      if (failures.length === 0) row.survived++
      this.#rows.set(fault, row)
    }
  }

  /** @param begun when the run began, ms of the monotonic clock. */
  summary(begun: number): string {
    const seconds = (performance.now() - begun) / 1_000
    const { seeds } = this
    const perHour = Math.round((seeds / seconds) * 3_600).toLocaleString("en-US")
    const share = (count: number) => `${((100 * count) / Math.max(1, seeds)).toFixed(2)}%`
    return [
      `${seeds} seeds in ${seconds.toFixed(0)} s (${perHour} an hour), ${this.failed} failed`,
      `${Math.round(this.#virtualMs / 1000 / Math.max(1, seeds))} s of virtual time a seed`,
      `${this.#deliveries} deliveries, ${this.#requests} requests, ${this.#repeats} repeated ends`,
      `the broker lost something acknowledged in ${share(this.#excused)} of the seeds: that is excused`
    ].join("; ")
  }

  /** A table in Markdown. */
  get text(): string {
    const rows = [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1))
    return [
      "| fault | injected | seeds with it | of these without a failure |",
      "| --- | ---: | ---: | ---: |",
      ...rows.map(
        ([fault, { injected, seeds, survived }]) =>
          `| ${fault} | ${injected} | ${seeds} | ${survived} |`
      )
    ].join("\n")
  }
}
