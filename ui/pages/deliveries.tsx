import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { Choice, Filter, Since, sinceTime } from "../filters.tsx"
import { shownEndpoint, shownTenant } from "../frame.tsx"
import {
  Answered,
  AttemptsMade,
  Command,
  deliveryPage,
  EndpointLink,
  Pager,
  Rows,
  State
} from "../parts.tsx"
import { filter, query } from "../router.ts"
import { petrel, session } from "../session.ts"
import { Ago, lasting } from "../times.tsx"
import { FirstEvent } from "./first-event.tsx"
import { LogTabs } from "./log-tabs.tsx"

const states = ["waiting", "delivered", "dead-lettered", "discarded", "skipped"] as const
type StateName = (typeof states)[number]

const isState = (text: string | undefined): text is StateName =>
  states.some((state) => state === text)

/** The log of deliveries, by filters that are in the address. */
export const Deliveries = () => {
  const tenant = shownTenant()
  const endpoint = shownEndpoint()
  const { cursor, error, event, since, state, status, type, until } = query.value
  const asked = useAsked(
    `deliveries ${tenant} ${endpoint} ${JSON.stringify(query.value)}`,
    (options) =>
      petrel.log
        .list(
          {
            tenant,
            ...(endpoint === undefined ? {} : { endpoint }),
            ...(event === undefined ? {} : { event }),
            ...(type === undefined ? {} : { type }),
            ...(isState(state) ? { state } : {}),
            ...(status === undefined ? {} : { status }),
            ...(error === undefined ? {} : { error }),
            ...(since === undefined ? {} : { since: sinceTime(since) }),
            ...(until === undefined ? {} : { until })
          } as Parameters<typeof petrel.log.list>[0],
          options
        )
        .page(cursor),
    cursor === undefined ? 5_000 : undefined
  )
  const times = { since: since === undefined ? undefined : sinceTime(since), until }
  const flags = Object.entries({ endpoint, event, type, state, status, error, ...times })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value ?? "")}`)
  const curl = curlCommand(
    `/v1/tenants/${tenant}/deliveries${flags.length === 0 ? "" : `?${flags.join("&")}`}`
  )
  return (
    <>
      <h1>Deliveries</h1>
      <LogTabs shown="deliveries" />
      <search class="filters" aria-label="Filters">
        {session.value?.endpoint === undefined && <Filter name="endpoint" hint="billing" />}
        <Filter name="event" hint="acme.invoice-42" />
        <Filter name="type" hint="invoice.*" />
        <Choice name="state" options={states} />
        <Filter name="status" hint="503 or 5xx" />
        <Filter name="error" hint="timeout" />
        <Since />
      </search>
      <Answered asked={asked}>
        {(page) => (
          <>
            <Rows
              items={page.deliveries}
              keyOf={({ seq, tenant }) => `${tenant} ${seq}`}
              empty={
                flags.length === 0 ? (
                  <>
                    <p>
                      Nothing was delivered yet: publish an event that an endpoint wants, and it is
                      here within a second.
                    </p>
                    <FirstEvent />
                  </>
                ) : (
                  "No delivery matches these filters."
                )
              }
              head={
                <>
                  <th>Event</th>
                  <th class="hide-s">Type</th>
                  <th class="hide-s">Endpoint</th>
                  <th>State</th>
                  <th class="hide-s">Last answer</th>
                  <th class="n hide-m">Attempts</th>
                  <th class="n hide-m">Took</th>
                  <th class="n">When</th>
                </>
              }
              row={(one) => (
                <>
                  <td class="mono">
                    <a href={deliveryPage(one.tenant, one.delivery)}>{one.event}</a>
                  </td>
                  <td class="hide-s">{one.type ?? "–"}</td>
                  <td class="hide-s">
                    <EndpointLink tenant={one.tenant} id={one.endpoint} />
                  </td>
                  <td>
                    <State
                      is={one.state}
                      says={
                        one.reason === null ? (
                          one.state
                        ) : (
                          <span>
                            {one.state}
                            <span class="hide-s"> · {one.reason}</span>
                          </span>
                        )
                      }
                    />
                  </td>
                  <td class="hide-s">{one.error ?? one.status ?? "–"}</td>
                  <td class="n hide-m">
                    <AttemptsMade of={one} />
                  </td>
                  <td class="n hide-m">
                    {one.durationMs === null ? "–" : lasting(one.durationMs)}
                  </td>
                  <td class="n">
                    <Ago at={one.at} />
                  </td>
                </>
              )}
            />
            <div class="below">
              <Pager cursors={page} show={(to) => filter({ cursor: to })} />
              <small>
                {page.searchedUntil !== null && (
                  <>
                    searched until <Ago at={page.searchedUntil} />;{" "}
                  </>
                )}
                {page.lag.ms > 2_000
                  ? `the log is ${lasting(page.lag.ms)} behind`
                  : "the log is up to date"}
              </small>
            </div>
          </>
        )}
      </Answered>
      <Command text={curl} request={curl} />
    </>
  )
}
