/**
 * Labels of one sample, in order; OTLP calls them attributes. An object of labels belongs to one
 * sample of one metric: what is made of it is kept. Only {@link noLabels} is shared.
 */
export type Labels = Readonly<Record<string, string>>

/** One number. */
export interface NumberSample {
  readonly labels: Labels
  readonly value: number
}

/** The counts of a histogram. */
export interface HistogramSample {
  readonly labels: Labels
  /** Upper bounds, inclusive, in the family's unit. */
  readonly bounds: ReadonlyArray<number>
  /** Number of values up to each bound and above the one before; the last is above all bounds. */
  readonly counts: ArrayLike<number>
  readonly sum: number
}

interface Described {
  /** The name with dots and without unit, as OpenTelemetry writes it: `petrel.attempt.duration`. */
  readonly name: string
  readonly help: string
  /** Unit of the values. (Default: a plain number) */
  readonly unit?: "s" | "By" | undefined
}

/** A counter never falls while its process runs. */
export interface NumberFamily extends Described {
  readonly type: "counter" | "gauge"
  readonly samples: ReadonlyArray<NumberSample>
}

export interface HistogramFamily extends Described {
  readonly type: "histogram"
  readonly samples: ReadonlyArray<HistogramSample>
}

/** A metric and its samples, at one moment. */
export type Family = NumberFamily | HistogramFamily

export const noLabels: Labels = {}

/** Makes a gauge of one value. */
export const gauge = (
  name: string,
  help: string,
  value: number,
  unit?: Described["unit"]
): NumberFamily => ({ name, help, type: "gauge", unit, samples: [{ labels: noLabels, value }] })

/** Makes a counter of one value. */
export const counter = (
  name: string,
  help: string,
  value: number,
  unit?: Described["unit"]
): NumberFamily => ({ name, help, type: "counter", unit, samples: [{ labels: noLabels, value }] })
