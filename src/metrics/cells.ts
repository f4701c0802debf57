import type { HistogramSample, Labels, NumberSample } from "./family.ts"

/** Counters of one metric: one number for each combination of labels. */
export class CounterCells {
  readonly #labels: ReadonlyArray<Labels>
  readonly #values: Float64Array

  constructor(labels: ReadonlyArray<Labels>) {
    this.#labels = labels
    this.#values = new Float64Array(labels.length)
  }

  /** Adds one to a cell. */
  add(cell: number): void {
    this.#values[cell] = (this.#values[cell] ?? 0) + 1
  }

  /** Returns the cells; with `sparse` only those that have counted. */
  samples(sparse: boolean): ReadonlyArray<NumberSample> {
    const samples: Array<NumberSample> = []
    for (const [cell, labels] of this.#labels.entries()) {
      const value = this.#values[cell] ?? 0
      if (value > 0 || !sparse) samples.push({ labels, value })
    }
    return samples
  }
}

/** Counts values by fixed bounds. Memory: one number per bound. */
export class HistogramCells {
  readonly #labels: Labels
  readonly #bounds: ReadonlyArray<number>
  /** Counts by bound, one for values above all bounds, and the sum. */
  readonly #cells: Float64Array
  /** Factor from the values to the unit in which they are exported. */
  readonly #scale: number
  readonly #scaled: ReadonlyArray<number>

  /**
   * @param bounds upper bounds, inclusive and ascending, in the unit of the values.
   * @param scale factor to the exported unit, such as 0.001 for values in ms. (Default: 1)
   */
  constructor(labels: Labels, bounds: ReadonlyArray<number>, scale = 1) {
    this.#labels = labels
    this.#bounds = bounds
    this.#cells = new Float64Array(bounds.length + 2)
    this.#scale = scale
    // 0.001 * 2500 is not 2.5; the names of buckets must not show that.
    this.#scaled = bounds.map((bound) => Number((bound * scale).toPrecision(12)))
  }

  observe(value: number): void {
    const bounds = this.#bounds
    const cells = this.#cells
    const { length } = bounds
    let step = 0
    while (step < length && value > (bounds[step] as number)) step++
    cells[step] = (cells[step] as number) + 1
    cells[length + 1] = (cells[length + 1] as number) + value
  }

  /** Returns its sample; with `sparse` none as long as it has no values. */
  samples(sparse: boolean): ReadonlyArray<HistogramSample> {
    const { length } = this.#bounds
    const counts = this.#cells.slice(0, length + 1)
    if (sparse && counts.every((count) => count === 0)) return []
    const sum = (this.#cells[length + 1] ?? 0) * this.#scale
    return [{ labels: this.#labels, bounds: this.#scaled, counts, sum }]
  }
}

/** Stands for all that came once the cap was reached. */
export const others = "_other"

/**
 * Values by name, of which there are at most `cap`; whatever comes later shares one. So a label
 * that users choose bounds neither memory nor series.
 */
export class CappedCells<A> {
  readonly #make: (name: string) => A
  readonly #cap: number
  readonly #cells = new Map<string, A>()

  constructor(cap: number, make: (name: string) => A) {
    this.#cap = cap
    this.#make = make
  }

  of(name: string): A {
    return this.#cells.get(name) ?? this.#add(name)
  }

  get all(): Iterable<A> {
    return this.#cells.values()
  }

  #add(name: string): A {
    if (this.#cells.size >= this.#cap) return this.#others
    const made = this.#make(name)
    this.#cells.set(name, made)
    return made
  }

  get #others(): A {
    const known = this.#cells.get(others)
    if (known !== undefined) return known
    const made = this.#make(others)
    this.#cells.set(others, made)
    return made
  }
}
