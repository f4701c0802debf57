import { Effect, Result, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readValue } from "../../broker/values.ts"
import { Endpoint } from "../../domain/endpoint.ts"
import { attemptTimeoutMs, defaultTimeoutMs } from "../../policy/attempt-timeout.ts"
import { policiesOf } from "../../policy/endpoint-policies.ts"
import type { RoundAt } from "../fact-record.ts"

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Endpoint))

const timeoutIn = (text: string): number => {
  const endpoint = Result.getOrUndefined(decode(text))
  if (endpoint === undefined) return defaultTimeoutMs
  return Result.match(policiesOf(endpoint), {
    onFailure: () => defaultTimeoutMs,
    onSuccess: (policies) =>
      Math.max(...policies.map(({ policy }) => attemptTimeoutMs(endpoint, policy)))
  })
}

type Whose = Pick<RoundAt, "tenant" | "endpoint">

const keyOf = ({ endpoint, tenant }: Whose): string => `${tenant}.${endpoint}`

/** Concurrent reads of endpoints. */
const maxConcurrentReads = 16

/**
 * How long an attempt at an endpoint may take, by the longest time-out in its present configuration.
 * For so long a delivery may be in an attempt, and appear in no stream.
 */
export const makeAttemptTimes = Effect.gen(function* () {
  const { names } = yield* Broker
  const known = new Map<string, number>()
  const read = Effect.fnUntraced(function* (key: string) {
    // An auditor may lack permission to read endpoints: they contain secrets.
    const entry = yield* Effect.orElseSucceed(
      readValue(names.buckets.endpoints, key),
      () => undefined
    )
    known.set(key, entry === undefined ? defaultTimeoutMs : timeoutIn(entry.string()))
  })
  return {
    /** Reads the configurations that are not known yet. */
    learn: (all: Iterable<Whose>) =>
      Effect.forEach(
        [...new Set([...all].map(keyOf))].filter((key) => !known.has(key)),
        read,
        { concurrency: maxConcurrentReads, discard: true }
      ),
    /** ms */
    of: (whose: Whose): number => known.get(keyOf(whose)) ?? defaultTimeoutMs
  }
})

export type AttemptTimes = Effect.Success<typeof makeAttemptTimes>
