import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { prometheusContentType, prometheusText } from "../metrics/prometheus-text.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
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

/** How often numbers are read while somebody scrapes, ms: several scrapers cost one look. */
const everyMs = 5_000
/** Older numbers are not answered, ms: nobody has read them, or it takes longer than usual. */
const oldestMs = 15_000
/** Nobody scrapes any more who has not for so long, ms. */
const scrapingMs = 120_000

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
 * Reads numbers again and again while they are asked for, until the scope ends: one look asks all
 * workers, and who asks gets the last numbers at once. Returns how to get them.
 */
const keepReading = Effect.fnUntraced(function* <A, E, R>(read: Effect.Effect<A, E, R>) {
  let known: { readonly numbers: A; readonly at: number } | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  const once = Effect.tap(yield* Effect.cachedWithTTL(read, "1 second"), (numbers) =>
    Effect.sync(() => {
      known = { numbers, at: timers.monotonicMs() }
    })
  )
  const again = Effect.suspend(() =>
    timers.monotonicMs() - askedAt > scrapingMs ? Effect.void : Effect.ignore(once)
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(everyMs), again)))
  return Effect.suspend(() => {
    askedAt = timers.monotonicMs()
    return known !== undefined && askedAt - known.at <= oldestMs
      ? Effect.succeed(known.numbers)
      : once
  })
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
      const read = yield* keepReading(Effect.flatMap(readProjection, readSystemFamilies))
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
