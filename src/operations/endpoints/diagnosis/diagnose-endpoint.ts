import { Clock, Effect } from "effect"
import { readLayout } from "../../../broker/installed.ts"
import { queryOwner } from "../../../cluster/introspection-query.ts"
import { partitionOf } from "../../../domain/names.ts"
import { getEndpoint } from "../../../endpoints/endpoint-store.ts"
import { maySeeAnswers, withoutAnswer } from "../../answers.ts"
import type { Asker } from "../../caller.ts"
import type { EndpointName } from "../endpoint-settings.ts"
import { adviceOf, checksOf, type Diagnosis } from "./diagnosis.ts"
import type { Findings } from "./findings.ts"
import { readFindings } from "./read-findings.ts"

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
 * that owns it try the connection. Changes nothing. Fails with EndpointNotFound.
 */
export const diagnoseEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  asker: Pick<Asker, "scopes">
) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const { partitions } = yield* readLayout
  const answer = yield* queryOwner(partitionOf(tenant, id, partitions), {
    ...{ about: "connection", tenant, endpoint: id }
  })
  const connection = answer?.connection
  const found = yield* readFindings(endpoint, connection)
  const findings = maySeeAnswers(asker) ? found : withoutAnswers(found)
  const now = yield* Clock.currentTimeMillis
  const checks = checksOf(findings, now)
  return {
    ...{ tenant, id, at: now, url: endpoint.url, checks },
    ...(connection === undefined ? {} : { connection }),
    advice: adviceOf(checks)
  } satisfies Diagnosis
})
