import { Clock, Effect, Schema } from "effect"
import { readPartitions } from "../../../broker/installed.ts"
import { queryOwner } from "../../../cluster/introspection.ts"
import { ConnectionCheck } from "../../../domain/connection-check.ts"
import { EndpointName } from "../../../domain/endpoint.ts"
import { partitionOf } from "../../../domain/names.ts"
import { Timestamp } from "../../../domain/timestamp.ts"
import { getEndpoint } from "../../../endpoints/endpoint-store.ts"
import { type Asker, maySeeAnswers, withoutAnswer } from "../../caller.ts"
import { readingHistory } from "../../history/history-readings.ts"
import { connectionChecks } from "./connection-checks.ts"
import { failureChecks, type Way } from "./failure-checks.ts"
import { Check, type Findings, readFindings } from "./findings.ts"
import { holdChecks, stateChecks, subscriptionCheck } from "./state-checks.ts"

/** What was found out about an endpoint, and what to do. */
export const Diagnosis = Schema.Struct({
  ...EndpointName.fields,
  /** ms since the epoch. */
  at: Timestamp.annotateKey({ description: "When it was looked at." }),
  url: Schema.String.annotateKey({ description: "Where its deliveries go." }),
  checks: Schema.Array(Check).annotateKey({ description: "What was looked at." }),
  connection: Schema.optionalKey(ConnectionCheck).annotateKey({
    description: "What came of a connection."
  }),
  advice: Schema.Array(Schema.String).annotateKey({
    description: "What to do, the most important first. Empty if nothing is wrong."
  })
})
export type Diagnosis = typeof Diagnosis.Type

const severity = { problem: 0, warning: 1, unknown: 2, ok: 3 } as const

/** Returns the advice of all checks, that about problems first. */
export const adviceOf = (checks: ReadonlyArray<Check>): ReadonlyArray<string> => [
  ...new Set(
    checks
      .toSorted((one, other) => severity[one.result] - severity[other.result])
      .flatMap(({ advice }) => (advice === undefined ? [] : [advice]))
  )
]

const wayOf = ({ connection }: Findings, checks: ReadonlyArray<Check>): Way => {
  if (connection === undefined) return "unknown"
  return checks.some(({ result }) => result === "problem") ? "blocked" : "free"
}

/**
 * Makes all checks, in the order in which an event passes what they are about.
 *
 * @param now ms since the epoch.
 */
export const checksOf = (findings: Findings, now: number): ReadonlyArray<Check> => {
  const connection = connectionChecks(findings, now)
  return [
    subscriptionCheck(findings, now),
    ...stateChecks(findings, now),
    ...connection,
    ...failureChecks(findings, wayOf(findings, connection), now),
    ...holdChecks(findings, now)
  ]
}

/** Of an answer, only how long to wait remains. */
const withoutAnswers = ({ attempts, ...findings }: Findings): Findings => ({
  ...findings,
  attempts: {
    ...attempts,
    failures: attempts.failures.map((fact) => {
      const pause = fact.response?.headers["retry-after"]
      const bare = withoutAnswer(fact)
      return pause === undefined
        ? bare
        : { ...bare, response: { headers: { "retry-after": pause }, body: "", bytes: 0 } }
    })
  }
})

/**
 * Finds out why an endpoint gets nothing, or fails: reads what is known of it, and lets the worker
 * that owns it try the connection. Changes nothing. Fails with EndpointNotFound, and with Busy where
 * too much is read already.
 */
export const diagnoseEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  asker: Pick<Asker, "scopes">
) {
  const [{ endpoint }, partitions] = yield* Effect.all([getEndpoint(tenant, id), readPartitions], {
    concurrency: 2
  })
  const partition = partitionOf(tenant, id, partitions)
  const [answer, found] = yield* Effect.all(
    [
      queryOwner(partition, { about: "connection", tenant, endpoint: id }),
      readingHistory(readFindings(endpoint, partition))
    ],
    { concurrency: 2 }
  )
  const connection = answer?.connection
  const all: Findings = { ...found, connection }
  const findings = maySeeAnswers(asker) ? all : withoutAnswers(all)
  const now = yield* Clock.currentTimeMillis
  const checks = checksOf(findings, now)
  return {
    ...{ tenant, id, at: now, url: endpoint.url, checks },
    ...(connection === undefined ? {} : { connection }),
    advice: adviceOf(checks)
  } satisfies Diagnosis
})
