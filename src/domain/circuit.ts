/** When a circuit opens, for how long, and what then; all there, with the defaults filled in. */
export interface CircuitSettings {
  /** Transient failures in a row that open it. */
  readonly failures: number
  /** A share of failures that opens it, however successes lie in between. (Absent: none does) */
  readonly rate?: FailureRate
  /** The first cool-down, ms. */
  readonly coolDown: number
  /** What the cool-down doubles up to, ms. */
  readonly maxCoolDown: number
  /** Probes that must succeed before it closes. */
  readonly successes: number
  /** What becomes of deliveries meanwhile. */
  readonly onOpen: "backlog" | "dead-letter"
  /** An endpoint that has done nothing but fail for so long (ms) is disabled. */
  readonly giveUpAfter: number
  /** So many permanent failures in a row disable the endpoint. */
  readonly permanentFailures: number
}

/** So many percent of the attempts within `over` (ms), where there were at least `of`. */
export interface FailureRate {
  readonly percent: number
  readonly of: number
  readonly over: number
}

const second = 1_000
const minute = 60 * second
const day = 24 * 60 * minute

export const defaultCircuit: CircuitSettings = {
  failures: 5,
  rate: { percent: 50, of: 20, over: minute },
  coolDown: 30 * second,
  maxCoolDown: 15 * minute,
  successes: 2,
  onOpen: "backlog",
  giveUpAfter: 5 * day,
  permanentFailures: 100
}
