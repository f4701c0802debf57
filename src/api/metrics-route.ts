import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { prometheusContentType, prometheusText } from "../metrics/prometheus-text.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { readSystemFamilies } from "../operations/status/status-metrics.ts"
import { LiveTokens } from "../operations/tokens/live-tokens.ts"
import { allTenants, hasExpired } from "../operations/tokens/token.ts"
import { DeliveryLog } from "../projection/delivery-log.ts"
import { timers } from "../time/timers.ts"
import { tokenIn } from "./begin-in-turn.ts"
import { LiveConnections } from "./connections.ts"
import { isLoopback } from "./hosts.ts"
import { problemResponse } from "./problems.ts"
import type { RequestDurations } from "./request-durations.ts"

export const metricsPath = "/metrics"

/** How long numbers are kept: several scrapers cost one look at the installation. */
const keptFor = "5 seconds"

const refused = problemResponse(
  {
    status: 401,
    name: "unauthorized",
    title: "A token is needed",
    detail:
      "only who asks on this machine needs none: send an operator's token of all tenants, `Authorization: Bearer ptl_…`"
  },
  { "www-authenticate": 'Bearer realm="petrel"' }
)

const away = problemResponse(
  {
    status: 503,
    name: "unavailable",
    title: "It cannot be answered now",
    detail: "the broker does not answer"
  },
  { "retry-after": "1" }
)

/** Returns how far the log of deliveries is behind; undefined where no projection answers. */
const readProjection = Effect.gen(function* () {
  const log = yield* Effect.serviceOption(DeliveryLog)
  if (Option.isNone(log)) return undefined
  return yield* log.value.status.pipe(
    Effect.map(({ lag, repeatedAttempts }) => ({ lagMs: lag.ms, repeatedAttempts })),
    Effect.orElseSucceed(() => undefined)
  )
})

/**
 * Serves the numbers of the installation to Prometheus. Without a token only where nobody but this
 * machine can ask: it listens on loopback, and no other address is known that leads here.
 */
export const metricsRoute = (
  host: string,
  publicUrl: string | undefined,
  durations: RequestDurations
) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const tokens = yield* LiveTokens
      const connections = yield* LiveConnections
      const refusedRequests = yield* RefusedRequests
      const read = yield* Effect.cachedWithTTL(
        Effect.flatMap(readProjection, readSystemFamilies),
        keptFor
      )
      const isOpen = isLoopback(host) && publicUrl === undefined
      const mayAsk = (authorization: string) => {
        const record = tokens.find(tokenIn(authorization))
        return (
          record !== undefined &&
          record.tenant === allTenants &&
          record.scopes.includes("operator") &&
          !hasExpired(record, timers.wallMs())
        )
      }
      const answer = Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        if (!isOpen && !mayAsk(headers.authorization ?? "")) return refused
        const families = yield* read
        const own = [durations.family(), connections.family(), refusedRequests.family()]
        return HttpServerResponse.text(prometheusText([...families, ...own]), {
          contentType: prometheusContentType
        })
      })
      return HttpRouter.add(
        "GET",
        metricsPath,
        Effect.catch(answer, () => Effect.succeed(away))
      )
    })
  )
