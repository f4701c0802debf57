import { Clock, Deferred, Duration, Effect, Schedule, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Broker } from "../../broker/broker.ts"
import { listRaisedAlerts } from "../../operations/alerts/raised-alerts.ts"
import { explainDelivery } from "../../operations/deliveries/explain-delivery.ts"
import { readEventBody, showEvent } from "../../operations/events/find-event.ts"
import type { LiveFailure } from "../../operations/history/live-failures.ts"
import { liveFailures } from "../../operations/history/live-failures.ts"
import type { PeriodTotals } from "../../operations/history/period-totals.ts"
import { sumUpGroups, sumUpHistory } from "../../operations/history/period-totals.ts"
import { allTenants } from "../../operations/tokens/token.ts"
import { Caller } from "../access.ts"
import { Api } from "../definition/api.ts"
import { defaultLimit, timeOf } from "../definition/common.ts"
import { listing, reading } from "../failures.ts"
import { Stopping } from "../stopping.ts"

const day = Duration.toMillis("1 day")

/** Pause between the lines that keep a quiet connection open. */
const heartbeat = "15 seconds"
/** Pause between looks whether the token of a follower is still valid. */
const checkedEvery = "500 millis"

const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

/** Returns a failure as server-sent events. JSON has no line breaks. */
const asEvents = ({ dropped, record, seq }: LiveFailure): Uint8Array =>
  bytes(
    [
      ...(dropped === 0 ? [] : [`event: dropped\ndata: ${JSON.stringify({ dropped })}\n`]),
      `event: failure\nid: ${seq}\ndata: ${JSON.stringify({ seq, ...record })}\n`,
      ""
    ].join("\n")
  )

const tenantOf = (name: string): string | undefined => (name === allTenants ? undefined : name)

/** Follows failures until the client leaves, its token is revoked, or the server stops. */
const follow = Effect.fnUntraced(function* (
  tenant: string | undefined,
  endpoint: string | undefined
) {
  const stopping = yield* Stopping
  const { isValid } = yield* Caller
  const context = yield* Effect.context<Broker>()
  const invalid = Effect.repeat(Effect.sleep(checkedEvery), { until: () => !isValid() })
  const beats = Stream.fromSchedule(Schedule.spaced(heartbeat)).pipe(
    Stream.map(() => bytes(": still there\n\n"))
  )
  const lines = Stream.make(bytes(": following\n\n")).pipe(
    Stream.concat(Stream.map(liveFailures(tenant, endpoint), asEvents)),
    Stream.merge(beats),
    Stream.interruptWhen(Effect.raceFirst(Deferred.await(stopping), Effect.asVoid(invalid))),
    Stream.provideContext(context)
  )
  return HttpServerResponse.stream(lines, { contentType: "text/event-stream" })
})

/** What is summed up, and how. */
interface TotalsAsked {
  readonly by?: "hour" | "day" | "endpoint" | "type"
  readonly since?: string
  readonly until?: string
  readonly limit?: number
}

const totals = Effect.fnUntraced(function* (
  tenant: string | undefined,
  { by = "hour", limit = defaultLimit, since, until }: TotalsAsked
) {
  const now = yield* Clock.currentTimeMillis
  const range = {
    ...(tenant === undefined ? {} : { tenant }),
    since: since === undefined ? now - day : timeOf(since),
    ...(until === undefined ? {} : { until: timeOf(until) })
  }
  if (by === "endpoint" || by === "type") {
    const { rows } = yield* sumUpGroups({ ...range, by, limit })
    return { totals: rows }
  }
  const totals: Array<PeriodTotals> = []
  yield* sumUpHistory({ ...range, by }, (complete) => Effect.sync(() => totals.push(...complete)))
  return { totals }
})

/** Carries out the routes of what became of events. */
export const deliveriesHandlers = HttpApiBuilder.group(Api, "deliveries", (handlers) =>
  handlers.handleAll({
    event: ({ params: { event, tenant } }) => reading(showEvent(tenant, event)),
    eventBody: ({ params: { event, tenant } }) =>
      reading(
        Effect.map(readEventBody(tenant, event), ({ body, contentType }) =>
          HttpServerResponse.uint8Array(body, {
            contentType,
            // A receiver's HTML must not run as a page of this server.
            headers: { "content-disposition": "attachment" }
          })
        )
      ),
    delivery: ({ params: { delivery, tenant } }) => reading(explainDelivery(delivery, tenant)),
    totals: ({ params, query }) => listing(totals(tenantOf(params.tenant), query)),
    alerts: ({ params }) =>
      listing(Effect.map(listRaisedAlerts(tenantOf(params.tenant)), (alerts) => ({ alerts }))),
    live: ({ params, query }) => follow(tenantOf(params.tenant), query.endpoint)
  })
)
