import { Duration, Schema } from "effect"
import { PositiveDuration } from "./duration.ts"

const count = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

const isOrdered = ({
  coolDown,
  maxCoolDown
}: {
  readonly coolDown?: Duration.Duration
  readonly maxCoolDown?: Duration.Duration
}): string | undefined =>
  coolDown === undefined ||
  maxCoolDown === undefined ||
  Duration.toMillis(coolDown) <= Duration.toMillis(maxCoolDown)
    ? undefined
    : "must have a coolDown that is not longer than its maxCoolDown"

/**
 * What a worker does with an endpoint that it gives up. Disabled: it gets no events, and what waits
 * for it ends as dead letters. Suspended: what waits and what comes is kept until it is resumed, each
 * delivery no longer than until its own deadline.
 */
const GivingUp = Schema.Literals(["disable", "suspend"])
type GivingUp = typeof GivingUp.Type

/**
 * A circuit in an endpoint's configuration. Settings left out default to {@link defaultCircuit}.
 */
export const Circuit = Schema.Struct({
  failures: Schema.optionalKey(count(10_000)).annotateKey({
    description: "Transient failures in a row that open it."
  }),
  rate: Schema.optionalKey(
    Schema.Union([
      Schema.Literal("none"),
      Schema.Struct({
        percent: Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 100 })).annotateKey({
          description: "How many of the attempts have to fail, percent."
        }),
        of: count(100_000),
        over: PositiveDuration.annotateKey({ description: "The time over which they are counted." })
      })
    ])
  ).annotateKey({ description: "The share of failures that opens it, or `none`." }),
  coolDown: Schema.optionalKey(PositiveDuration).annotateKey({
    description: "How long it stays open at first."
  }),
  maxCoolDown: Schema.optionalKey(PositiveDuration).annotateKey({
    description: "How long it stays open at most."
  }),
  successes: Schema.optionalKey(count(100)).annotateKey({
    description: "Probes in a row that have to succeed to close it."
  }),
  onOpen: Schema.optionalKey(Schema.Literals(["backlog", "dead-letter"])).annotateKey({
    description: "What happens to deliveries while it is open."
  }),
  giveUpAfter: Schema.optionalKey(PositiveDuration).annotateKey({
    description: "How long an endpoint may fail before it is given up."
  }),
  permanentFailures: Schema.optionalKey(count(1_000_000)).annotateKey({
    description: "Permanent failures in a row at which it is given up."
  }),
  onGiveUp: Schema.optionalKey(GivingUp).annotateKey({
    description: "What happens to an endpoint that is given up."
  }),
  onGone: Schema.optionalKey(GivingUp).annotateKey({
    description: "What happens to an endpoint that answers 410."
  })
})
  .check(Schema.makeFilter(isOrdered))
  .annotate({
    identifier: "Circuit",
    description: "When an endpoint is left alone after failures, and when it is given up."
  })
export type Circuit = typeof Circuit.Type

/** When a circuit opens, for how long, and what happens then, with the defaults filled in. */
export interface CircuitSettings {
  /** Consecutive transient failures that open the circuit. */
  readonly failures: number
  /**
   * The failure rate that opens the circuit, regardless of successes in between. Absent: no rate
   * opens it.
   */
  readonly rate?: FailureRate
  /** The first cool-down, ms. */
  readonly coolDown: number
  /** The upper bound of the cool-down, which doubles, ms. */
  readonly maxCoolDown: number
  /** Successful probes needed to close the circuit. */
  readonly successes: number
  /** Where deliveries go while the circuit is open. */
  readonly onOpen: "backlog" | "dead-letter"
  /** An endpoint that only fails for this long is given up, ms. */
  readonly giveUpAfter: number
  /** Consecutive permanent failures after which the endpoint is given up. */
  readonly permanentFailures: number
  /** What becomes of an endpoint that only fails. */
  readonly onGiveUp: GivingUp
  /** What becomes of an endpoint whose receiver answered 410. */
  readonly onGone: GivingUp
}

/** `percent` of the attempts within `over` (ms) fail, out of at least `of` attempts. */
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
  permanentFailures: 100,
  onGiveUp: "disable",
  onGone: "disable"
}

/**
 * Returns a circuit's settings with the defaults filled in. If only one cool-down is given and the
 * other's default would contradict it, the other takes the same value.
 */
export const circuitSettings = (circuit: Circuit = {}): CircuitSettings => {
  const { coolDown, giveUpAfter, maxCoolDown, rate, ...numbers } = circuit
  const { rate: defaultRate, ...defaults } = defaultCircuit
  const first = coolDown === undefined ? undefined : Duration.toMillis(coolDown)
  const longest = maxCoolDown === undefined ? undefined : Duration.toMillis(maxCoolDown)
  const share = rate === undefined ? defaultRate : failureRate(rate)
  return {
    ...defaults,
    ...numbers,
    coolDown: first ?? Math.min(defaults.coolDown, longest ?? Number.POSITIVE_INFINITY),
    maxCoolDown: longest ?? Math.max(defaults.maxCoolDown, first ?? 0),
    ...(giveUpAfter === undefined ? {} : { giveUpAfter: Duration.toMillis(giveUpAfter) }),
    ...(share === undefined ? {} : { rate: share })
  }
}

const failureRate = (rate: NonNullable<Circuit["rate"]>): FailureRate | undefined =>
  rate === "none" ? undefined : { ...rate, over: Duration.toMillis(rate.over) }
