import { Schema } from "effect"

/**
 * Closed: deliveries are attempted. Open: none is. Half-open: one at a time, to see whether the
 * receiver is back.
 */
export const CircuitState = Schema.Literals(["closed", "open", "half-open"])
export type CircuitState = typeof CircuitState.Type

/**
 * How an endpoint has fared: the value under `<tenant>.<endpoint>` in the health bucket. Times in ms
 * since the epoch.
 */
export const Health = Schema.Struct({
  v: Schema.Literal(1),
  /** Of the endpoint that is meant: one made again under the same name begins anew. */
  generation: Schema.String,
  circuit: Schema.Struct({
    state: CircuitState,
    /** 0: as long as anybody knows. */
    since: Schema.Number,
    /**
     * The latest cool-down, ms. A closed circuit keeps it until its traffic is back in full, so that
     * what fails before then cools down for longer, not for as long as the first time.
     */
    coolDown: Schema.optionalKey(Schema.Number),
    /** When it may be probed. */
    until: Schema.optionalKey(Schema.Number),
    /** Probes that succeeded since it was half-opened. */
    successes: Schema.optionalKey(Schema.Int),
    /** The delivery that was the latest probe: the next one should be another. */
    lastProbe: Schema.optionalKey(Schema.String),
    /** Why it opened. */
    why: Schema.optionalKey(Schema.String)
  }),
  /** Transient failures since the endpoint last answered with anything else. */
  failuresInRow: Schema.Int,
  /** Permanent failures since the last success. */
  permanentInRow: Schema.Int,
  /** When the first of the failures in a row came. */
  failingSince: Schema.optionalKey(Schema.Number),
  /** When it will have failed for too long and is disabled. */
  giveUpAt: Schema.optionalKey(Schema.Number),
  /** Until when the receiver asked to be left alone. */
  notBefore: Schema.optionalKey(Schema.Number),
  /** Of the latest failure. */
  lastStatus: Schema.optionalKey(Schema.Int),
  lastError: Schema.optionalKey(Schema.String)
})
export type Health = typeof Health.Type

/** That of an endpoint of which nothing bad is known. */
export const healthy = (generation: string): Health => ({
  v: 1,
  generation,
  circuit: { state: "closed", since: 0 },
  failuresInRow: 0,
  permanentInRow: 0
})

/** True where nothing is worth storing: what is not stored counts as {@link healthy}. */
export const isHealthy = ({ circuit, failuresInRow, notBefore, permanentInRow }: Health): boolean =>
  circuit.state === "closed" &&
  circuit.coolDown === undefined &&
  failuresInRow === 0 &&
  permanentInRow === 0 &&
  notBefore === undefined
