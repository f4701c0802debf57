import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { isEndpointKey } from "../../domain/endpoint.ts"
import { CircuitState } from "../../domain/health.ts"
import type { EndpointCounts } from "../../domain/installation.ts"
import { readLostEndpoints } from "../../endpoints/lost-endpoints.ts"

/** An endpoint whose circuit is open. */
interface Troubled {
  readonly tenant: string
  readonly endpoint: string
  /** ms since the epoch */
  readonly since: number
  readonly why: string
}

export interface EndpointsSurvey {
  readonly counts: Omit<typeof EndpointCounts.Type, "withBacklog">
  /** Endpoints that the history has, and that are not in the bucket since it was made again. */
  readonly lost: number
  /** The three endpoints whose circuit has been open longest, in that order. */
  readonly longestOpen: ReadonlyArray<Troubled>
}

const named = 3

// Only what is counted: decoding 100,000 whole configurations takes seconds.
const Standing = Schema.Struct({
  generation: Schema.String,
  disabled: Schema.optionalKey(Schema.Unknown),
  suspended: Schema.optionalKey(Schema.Unknown),
  paused: Schema.optionalKey(Schema.Unknown)
})
const Fare = Schema.Struct({
  generation: Schema.String,
  circuit: Schema.Struct({
    state: CircuitState,
    since: Schema.Number,
    why: Schema.optionalKey(Schema.String)
  })
})
const decodeStanding = Schema.decodeUnknownOption(Schema.fromJsonString(Standing))
const decodeFare = Schema.decodeUnknownOption(Schema.fromJsonString(Fare))

/** Calls `take` with each value of a bucket. As a Stream, 100,000 values took three times as long. */
const forEachValue = Effect.fnUntraced(function* (
  bucket: string,
  take: (key: string, text: string) => void
) {
  const { streamInfo } = yield* Broker
  const stream = `KV_${bucket}`
  const prefix = `$KV.${bucket}.`
  const { state } = yield* streamInfo(`look at ${bucket}`, stream)
  yield* readThrough(
    { stream, subjects: [`${prefix}>`], from: state.first_seq, to: state.last_seq },
    ({ message }) => {
      // A key that was removed.
      if (message.headers?.has("KV-Operation") === true) return
      take(message.subject.slice(prefix.length), message.string())
    }
  )
})

/** Counts the endpoints by state. */
export const surveyEndpoints = Effect.gen(function* () {
  const { names } = yield* Broker
  const fares = new Map<string, typeof Fare.Type>()
  yield* forEachValue(names.buckets.health, (key, text) => {
    const fare = Option.getOrUndefined(decodeFare(text))
    if (fare !== undefined && fare.circuit.state !== "closed") fares.set(key, fare)
  })
  const counts = {
    ...{ closed: 0, open: 0, halfOpen: 0 },
    ...{ paused: 0, suspended: 0, disabled: 0, unreadable: 0 }
  }
  const open: Array<Troubled> = []
  let total = 0
  yield* forEachValue(names.buckets.endpoints, (key, text) => {
    // Settings of tenants and of the system.
    if (!isEndpointKey(key)) return
    total++
    const standing = Option.getOrUndefined(decodeStanding(text))
    if (standing === undefined) counts.unreadable++
    else if (standing.disabled !== undefined) counts.disabled++
    else if (standing.suspended !== undefined) counts.suspended++
    else if (standing.paused !== undefined) counts.paused++
    else {
      const fare = fares.get(key)
      // Health of an earlier endpoint of the same name does not apply.
      const circuit = fare?.generation === standing.generation ? fare.circuit : undefined
      if (circuit === undefined) counts.closed++
      else if (circuit.state === "half-open") counts.halfOpen++
      else {
        counts.open++
        const [tenant = "", endpoint = ""] = key.split(".")
        open.push({ tenant, endpoint, since: circuit.since, why: circuit.why ?? "" })
      }
    }
  })
  const longestOpen = open.toSorted((a, b) => a.since - b.since).slice(0, named)
  const { length: lost } = yield* readLostEndpoints
  return { counts: { total, ...counts }, lost, longestOpen } satisfies EndpointsSurvey
})
