import type { Effect } from "effect"
import type { ConnectionCheck } from "../../domain/connection-check.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import type { Connections } from "./egress.ts"

/** A check waits no longer than this for a connection, whatever the endpoint's time-out, ms. */
const maxConnectMs = 15_000

/** Tries the way to an endpoint's host; undefined for an endpoint that is not known. */
export const checkEndpoint = (
  check: Connections["check"],
  endpoint: LiveEndpoint | undefined
): Effect.Effect<ConnectionCheck> | undefined => {
  if (endpoint === undefined) return undefined
  const { config, policyFor } = endpoint
  const { connectTimeout } = policyFor("")
  return check({
    tenant: config.tenant,
    url: config.url,
    timeoutMs: Math.min(connectTimeout, maxConnectMs)
  })
}
