import { Schema } from "effect"
import { Timestamp } from "./timestamp.ts"

/**
 * Closed: deliveries are attempted. Open: none is attempted. Half-open: one probe at a time tests
 * the receiver.
 */
export const CircuitState = Schema.Literals(["closed", "open", "half-open"])
export type CircuitState = typeof CircuitState.Type

/** What keeps deliveries from an endpoint; without that, the state of its circuit. */
export const EndpointState = Schema.Literals([
  ...CircuitState.literals,
  ...(["paused", "suspended", "disabled"] as const)
])
export type EndpointState = typeof EndpointState.Type

/**
 * Returns the state of an endpoint. It may be paused and disabled at the same time: the state that
 * lasts longest counts.
 *
 * @param circuit (Default: closed)
 */
export const endpointStateOf = (
  {
    disabled,
    paused,
    suspended
  }: { readonly disabled?: unknown; readonly paused?: unknown; readonly suspended?: unknown },
  circuit: CircuitState = "closed"
): EndpointState =>
  disabled !== undefined
    ? "disabled"
    : suspended !== undefined
      ? "suspended"
      : paused !== undefined
        ? "paused"
        : circuit

/**
 * The health of an endpoint: the value under `<tenant>.<endpoint>` in the health bucket. Times in
 * ms since the epoch.
 */
export const Health = Schema.Struct({
  v: Schema.Literal(1),
  /** The generation of the endpoint. An endpoint added again under the same name starts healthy. */
  generation: Schema.String,
  circuit: Schema.Struct({
    state: CircuitState,
    /** 0: no change of the circuit's state is known. */
    since: Timestamp,
    /**
     * The latest cool-down, ms. A closed circuit keeps it until traffic has ramped up, so that a
     * failure before then starts a longer cool-down, not the first one.
     */
    coolDown: Schema.optionalKey(Schema.Number),
    /** When the next probe may be sent. */
    until: Schema.optionalKey(Timestamp),
    /** Successful probes since the circuit became half-open. */
    successes: Schema.optionalKey(Schema.Int),
    /** The delivery of the latest probe, for people. */
    lastProbe: Schema.optionalKey(Schema.String),
    /** Why it opened. */
    why: Schema.optionalKey(Schema.String)
  }),
  /** Transient failures since the endpoint last gave any other answer. */
  failuresInRow: Schema.Int,
  /** Permanent failures since the last success. */
  permanentInRow: Schema.Int,
  /** The time of the first of the consecutive failures. */
  failingSince: Schema.optionalKey(Timestamp),
  /** When the endpoint is disabled if it keeps failing. */
  giveUpAt: Schema.optionalKey(Timestamp),
  /** The end of the receiver's Retry-After. */
  notBefore: Schema.optionalKey(Timestamp),
  /** The status of the latest failure. */
  lastStatus: Schema.optionalKey(Schema.Int),
  lastError: Schema.optionalKey(Schema.String)
})
export type Health = typeof Health.Type

/** Returns the health of an endpoint without recorded failures. */
export const healthy = (generation: string): Health => ({
  v: 1,
  generation,
  circuit: { state: "closed", since: 0 },
  failuresInRow: 0,
  permanentInRow: 0
})

/**
 * Returns true if the health need not be stored. An endpoint without a stored value counts as
 * {@link healthy}.
 */
export const isHealthy = ({ circuit, failuresInRow, notBefore, permanentInRow }: Health): boolean =>
  circuit.state === "closed" &&
  circuit.coolDown === undefined &&
  failuresInRow === 0 &&
  permanentInRow === 0 &&
  notBefore === undefined
