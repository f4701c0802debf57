import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { prometheusContentType, prometheusText } from "../metrics/prometheus-text.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { keepReading } from "../operations/status/kept-reading.ts"
import { readSystemFamilies } from "../operations/status/status-metrics.ts"
import { allTenants, hasExpired } from "../operations/token.ts"
import { LiveTokens } from "../operations/tokens/token-store.ts"
import { DeliveryLog } from "../projection/delivery-log.ts"
import { timers } from "../time/timers.ts"
import { isLoopback } from "./addresses.ts"
import { bearerIn } from "./credential.ts"
import { connectionFamilies, LiveConnections } from "./live-connections.ts"
import { problemResponse, unavailableProblem } from "./problems.ts"
import type { RequestDurations } from "./request-durations.ts"

export const metricsPath = "/metrics"

/** Several scrapers cost one reading. */
const keeping = { everyMs: 5_000, oldestMs: 15_000, askingMs: 120_000 }

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

const away = problemResponse(unavailableProblem("the broker does not answer", 1))

/** Returns how far the log of deliveries is behind; undefined where no projection answers. */
const readProjection = Effect.gen(function* () {
  const log = yield* Effect.serviceOption(DeliveryLog)
  if (Option.isNone(log)) return undefined
  return yield* log.value.status.pipe(
    Effect.map(({ lag, repeatedAttempts, sums }) => ({ lagMs: lag.ms, repeatedAttempts, sums })),
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
      const read = yield* keepReading(Effect.flatMap(readProjection, readSystemFamilies), keeping)
      const isOpen = isLoopback(host) && publicUrl === undefined
      const mayAsk = (authorization: string) => {
        const record = tokens.find(bearerIn(authorization))
        return (
          record !== undefined &&
          record.use === undefined &&
          record.tenant === allTenants &&
          record.scopes.includes("operator") &&
          !hasExpired(record, timers.wallMs())
        )
      }
      const answer = Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        if (!isOpen && !mayAsk(headers.authorization ?? "")) return refused
        const families = yield* read
        const own = [
          durations.family(),
          ...connectionFamilies(connections),
          refusedRequests.family()
        ]
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
