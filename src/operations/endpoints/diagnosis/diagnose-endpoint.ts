import { Clock, Effect } from "effect"
import { readLayout } from "../../../broker/installed.ts"
import { queryOwner } from "../../../cluster/introspection-query.ts"
import { partitionOf } from "../../../domain/names.ts"
import { getEndpoint } from "../../../endpoints/endpoint-store.ts"
import type { EndpointName } from "../endpoint-settings.ts"
import { adviceOf, checksOf, type Diagnosis } from "./diagnosis.ts"
import { readFindings } from "./read-findings.ts"

/**
 * Finds out why an endpoint gets nothing, or fails: reads what is known of it, and lets the worker
 * that owns it try the connection. Changes nothing. Fails with EndpointNotFound.
 */
export const diagnoseEndpoint = Effect.fnUntraced(function* ({ id, tenant }: EndpointName) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  const { partitions } = yield* readLayout
  const answer = yield* queryOwner(partitionOf(tenant, id, partitions), {
    ...{ about: "connection", tenant, endpoint: id }
  })
  const connection = answer?.connection
  const findings = yield* readFindings(endpoint, connection)
  const now = yield* Clock.currentTimeMillis
  const checks = checksOf(findings, now)
  return {
    ...{ tenant, id, at: now, url: endpoint.url, checks },
    ...(connection === undefined ? {} : { connection }),
    advice: adviceOf(checks)
  } satisfies Diagnosis
})
