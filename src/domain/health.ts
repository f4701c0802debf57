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
  generation: Schema.String.annotateKey({
    description:
      "The generation of the endpoint. An endpoint added again under the same name starts healthy."
  }),
  circuit: Schema.Struct({
    state: CircuitState,
    since: Timestamp.annotateKey({ description: "0: no change of the circuit's state is known." }),
    coolDown: Schema.optionalKey(Schema.Number).annotateKey({
      description:
        "The latest cool-down, ms. A closed circuit keeps it until traffic has ramped up, so that a failure before then starts a longer cool-down, not the first one."
    }),
    until: Schema.optionalKey(Timestamp).annotateKey({
      description: "When the next probe may be sent."
    }),
    successes: Schema.optionalKey(Schema.Int).annotateKey({
      description: "Successful probes since the circuit became half-open."
    }),
    lastProbe: Schema.optionalKey(Schema.String).annotateKey({
      description: "The delivery of the latest probe, for people."
    }),
    why: Schema.optionalKey(Schema.String).annotateKey({ description: "Why it opened." })
  }),
  failuresInRow: Schema.Int.annotateKey({
    description: "Transient failures since the endpoint last gave any other answer."
  }),
  permanentInRow: Schema.Int.annotateKey({
    description: "Permanent failures since the last success."
  }),
  failingSince: Schema.optionalKey(Timestamp).annotateKey({
    description: "The time of the first of the consecutive failures."
  }),
  giveUpAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When the endpoint is disabled if it keeps failing."
  }),
  notBefore: Schema.optionalKey(Timestamp).annotateKey({
    description: "The end of the receiver's Retry-After."
  }),
  lastStatus: Schema.optionalKey(Schema.Int).annotateKey({
    description: "The status of the latest failure."
  }),
  lastError: Schema.optionalKey(Schema.String).annotateKey({ description: "The last error." })
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
