import type { Alert, AlertName } from "../domain/alert.ts"
import type { AlertThresholds } from "./alert-thresholds.ts"
import type { AlertCounts } from "./alert-window.ts"
import { quantile, stepOf } from "./durations.ts"

/** What was found of one thing that alerts are raised about. */
export interface Reading extends Pick<Alert, "level" | "name" | "unit"> {
  readonly value?: number
  readonly threshold: number
  /**
   * Bad raises the alert and good clears it. Between them it stays as it is: whatever wavers about its
   * threshold raises one alert, not one each time. Unknown: too few samples; off: nobody wants to know.
   */
  readonly state: "bad" | "good" | "between" | "unknown" | "off"
  /** Nothing bad happened in the window, however few samples there are. */
  readonly quiet: boolean
}

/** What is done about an alert. */
export type Transition = "raise" | "clear"

/**
 * What is done about an alert after a reading.
 *
 * @param watched whether somebody has watched for a whole window: who has just begun knows of nothing
 *   bad, which is not the same as knowing that there is none.
 */
export const transitionOf = (
  isRaised: boolean,
  { quiet, state }: Pick<Reading, "quiet" | "state">,
  watched: boolean
): Transition | undefined => {
  if (!isRaised) return state === "bad" ? "raise" : undefined
  if (state === "bad") return undefined
  return state === "good" || state === "off" || (quiet && watched) ? "clear" : undefined
}

interface Measure extends Pick<Reading, "level" | "name" | "unit"> {
  readonly threshold: number | undefined
  readonly value: number | undefined
  /** What the value was made of, and how many of those it takes. */
  readonly samples: number
  readonly least: number
  readonly isBad: (value: number, threshold: number) => boolean
  readonly isGood: (value: number, threshold: number) => boolean
}

const judged = (measure: Measure): Reading => {
  const { isBad, isGood, least, level, name, samples, threshold, unit, value } = measure
  const said = { name, level, unit, ...(value === undefined ? {} : { value }) }
  if (threshold === undefined) return { ...said, threshold: 0, state: "off", quiet: true }
  if (value === undefined) return { ...said, threshold, state: "unknown", quiet: true }
  const quiet = isGood(value, threshold)
  const enough = samples >= least
  const state = !enough ? "unknown" : isBad(value, threshold) ? "bad" : quiet ? "good" : "between"
  return { ...said, threshold, state, quiet }
}

const above = {
  isBad: (value: number, threshold: number) => value > threshold,
  isGood: (value: number, threshold: number) => value <= threshold / 2
}
/** Of a share of successes it is the rest that counts. */
const below = {
  isBad: (value: number, threshold: number) => value < threshold,
  isGood: (value: number, threshold: number) => value >= 100 - (100 - threshold) / 2
}
/** As many as that, and clear when there is none. */
const reaching = {
  isBad: (value: number, threshold: number) => value >= threshold,
  isGood: (value: number) => value === 0
}

const percentOf = (part: number, whole: number): number | undefined =>
  whole === 0 ? undefined : (100 * part) / whole

/**
 * How large a share of deliveries succeeded, for an endpoint or a tenant. Those that failed at first
 * count against it before they have ended: of an endpoint that is down none ends for a long time.
 */
export const successReadings = (
  { dead, delivered, pending }: Pick<AlertCounts, "dead" | "delivered" | "pending">,
  { samples: least, successCriticalPercent, successWarnPercent }: AlertThresholds
): ReadonlyArray<Reading> => {
  const samples = delivered + dead + pending
  const common = {
    value: percentOf(delivered, samples),
    samples,
    least,
    unit: "percent",
    ...below
  }
  return [
    judged({ ...common, name: "success-low", level: "warn", threshold: successWarnPercent }),
    judged({
      ...common,
      name: "success-critical",
      level: "critical",
      threshold: successCriticalPercent
    })
  ]
}

/** How an endpoint is, beside its counts. */
export interface EndpointState {
  readonly isOpen: boolean
  /** For how long its circuit is known to have been closed, ms. */
  readonly closedFor: number
  readonly isDisabled: boolean
}

const stateReading = (
  name: AlertName,
  level: Reading["level"],
  threshold: number | undefined,
  is: { readonly bad: boolean; readonly good: boolean },
  unit: string
): Reading => {
  const said = { name, level, unit, value: is.bad ? 1 : 0, threshold: threshold ?? 0 }
  if (threshold === undefined) return { ...said, state: "off", quiet: true }
  // Whoever has just begun to watch sees a state as well as anybody: it needs no quiet.
  return { ...said, state: is.bad ? "bad" : is.good ? "good" : "between", quiet: false }
}

/**
 * True where no reading can be bad: all went well at once, and quickly. That is so of most endpoints,
 * and takes a tenth of the time of all readings.
 */
export const isSimplyWell = (
  { attempts, dead, delivered, pending, refused, retried, times }: AlertCounts,
  { isDisabled, isOpen }: EndpointState,
  { medianTime = Number.POSITIVE_INFINITY, p99Time = Number.POSITIVE_INFINITY }: AlertThresholds
): boolean =>
  !isOpen &&
  !isDisabled &&
  dead + pending + refused + retried === 0 &&
  attempts === delivered &&
  times.length <= stepOf(Math.min(medianTime, p99Time))

/** All that there is to say of an endpoint. */
export const endpointReadings = (
  counts: AlertCounts,
  { closedFor, isDisabled, isOpen }: EndpointState,
  thresholds: AlertThresholds
): ReadonlyArray<Reading> => {
  const { attempts, dead, delivered, refused, retried, times, tried } = counts
  const { samples: least, window } = thresholds
  const taken = (share: number) => quantile(times, share)
  const warn = { level: "warn", least } as const
  return [
    stateReading(
      "circuit-opened",
      "warn",
      thresholds.circuitOpened,
      { bad: isOpen, good: closedFor >= window },
      "circuits"
    ),
    stateReading(
      "endpoint-disabled",
      "critical",
      thresholds.endpointDisabled,
      { bad: isDisabled, good: !isDisabled },
      "endpoints"
    ),
    // No count of none is good: what was counted before this owner began is not known.
    withoutGood(
      judged({
        ...reaching,
        name: "dead-letters",
        level: "warn",
        unit: "dead letters",
        threshold: thresholds.deadLetters,
        value: dead,
        samples: 1,
        least: 1
      })
    ),
    ...successReadings(counts, thresholds),
    judged({
      ...warn,
      ...above,
      name: "retries-high",
      unit: "percent",
      threshold: thresholds.retriesPercent,
      value: percentOf(retried, tried),
      samples: tried
    }),
    judged({
      ...warn,
      ...above,
      name: "permanent-high",
      unit: "percent",
      threshold: thresholds.permanentPercent,
      value: percentOf(refused, delivered + refused),
      samples: delivered + refused
    }),
    judged({
      ...warn,
      isBad: above.isBad,
      // One is the least there can be.
      isGood: (value, threshold) => value <= 1 + (threshold - 1) / 2,
      name: "attempts-high",
      unit: "attempts per delivery",
      threshold: thresholds.attemptsPerDelivery,
      value: delivered === 0 ? undefined : attempts / delivered,
      samples: delivered
    }),
    judged({
      ...warn,
      ...above,
      name: "median-slow",
      unit: "ms",
      threshold: thresholds.medianTime,
      value: taken(0.5),
      samples: delivered
    }),
    judged({
      ...warn,
      ...above,
      name: "p99-slow",
      unit: "ms",
      threshold: thresholds.p99Time,
      value: taken(0.99),
      samples: delivered
    })
  ]
}

const withoutGood = (reading: Reading): Reading =>
  reading.state === "good" ? { ...reading, state: "between" } : reading

/** How the system is. */
export interface SystemState {
  /** By how much what waits grew within the window; undefined where nobody has watched for so long. */
  readonly growth: { readonly by: number; readonly goesOn: boolean } | undefined
  readonly circuitsOpen: number
  /** Whether an audit found something missing within the last day. */
  readonly isMissing: boolean
}

/** All that there is to say of the system. */
export const systemReadings = (
  { circuitsOpen, growth, isMissing }: SystemState,
  thresholds: AlertThresholds
): ReadonlyArray<Reading> => [
  judged({
    name: "waiting-growing",
    level: "warn",
    unit: "deliveries",
    threshold: thresholds.waitingGrowth,
    value: growth?.by,
    samples: growth === undefined ? 0 : 1,
    least: 1,
    isBad: (value, threshold) => growth?.goesOn === true && value >= threshold,
    isGood: (value) => value <= 0
  }),
  judged({
    name: "circuits-open",
    level: "critical",
    unit: "circuits",
    threshold: thresholds.circuitsOpen,
    value: circuitsOpen,
    samples: 1,
    least: 1,
    isBad: reaching.isBad,
    isGood: (value, threshold) => value <= threshold / 2
  }),
  stateReading(
    "deliveries-missing",
    "critical",
    thresholds.deliveriesMissing,
    { bad: isMissing, good: !isMissing },
    "audits"
  )
]

/** How much waits, looked at again and again. Times in ms since the epoch. */
export class Growth {
  #looks: Array<{ readonly at: number; readonly waiting: number }> = []

  note(at: number, waiting: number): void {
    this.#looks.push({ at, waiting })
  }

  /** How it grew within the window before a time; undefined where nobody has looked for so long. */
  within(window: number, at: number): SystemState["growth"] {
    const first = this.#looks.findLastIndex((look) => look.at <= at - window)
    if (first > 0) this.#looks = this.#looks.slice(first)
    const [begin] = this.#looks
    const middle = this.#looks.findLast((look) => look.at <= at - window / 2)
    const now = this.#looks.at(-1)
    if (begin === undefined || middle === undefined || now === undefined) return undefined
    if (begin.at > at - window) return undefined
    return { by: now.waiting - begin.waiting, goesOn: now.waiting > middle.waiting }
  }
}
