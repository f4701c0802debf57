import type { LoggedAttempt } from "../../src/client/client.ts"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { Choice, Filter, Since, sinceTime } from "../filters.tsx"
import { shownEndpoint, shownTenant } from "../frame.tsx"
import { Answered, Command, deliveryPage, EndpointLink, Pager, Rows, State } from "../parts.tsx"
import { filter, query } from "../router.ts"
import { petrel, session } from "../session.ts"
import { Ago, lasting } from "../times.tsx"
import { FirstEvent } from "./first-event.tsx"
import { LogTabs } from "./log-tabs.tsx"

const outcomeText = ({ error, status }: LoggedAttempt): string =>
  error === null ? String(status ?? "–") : error.class

/** Requests that were made to receivers, newest first. */
export const Attempts = () => {
  const tenant = shownTenant()
  const endpoint = shownEndpoint()
  const { cursor, error, event, outcome, since, status, type, until } = query.value
  const given = { endpoint, event, type, outcome, status, error }
  const times = { since: since === undefined ? undefined : sinceTime(since), until }
  const conditions = Object.entries({ ...given, ...times }).filter(
    (one): one is [string, string] => one[1] !== undefined
  )
  const asked = useAsked(
    `attempts ${tenant} ${endpoint} ${JSON.stringify(query.value)}`,
    (options) =>
      petrel.log
        .attempts(
          { tenant, ...Object.fromEntries(conditions) } as Parameters<
            typeof petrel.log.attempts
          >[0],
          options
        )
        .page(cursor),
    cursor === undefined ? 5_000 : undefined
  )
  const search = new URLSearchParams(conditions).toString()
  return (
    <>
      <h1>Attempts</h1>
      <LogTabs shown="attempts" />
      <search class="filters" aria-label="Filters">
        {session.value?.endpoint === undefined && <Filter name="endpoint" hint="billing" />}
        <Filter name="event" hint="acme.invoice-42" />
        <Filter name="type" hint="invoice.*" />
        <Choice name="outcome" options={["success", "failure"]} />
        <Filter name="status" hint="503, 5xx, none" />
        <Filter name="error" hint="timeout" />
        <Since />
      </search>
      <Answered asked={asked}>
        {(page) => (
          <>
            <Rows
              items={page.attempts}
              keyOf={({ seq }) => seq}
              empty={
                conditions.length === 0 ? (
                  <>
                    <p>Nothing was sent yet: publish an event that an endpoint wants.</p>
                    <FirstEvent />
                  </>
                ) : (
                  "No attempt matches these filters."
                )
              }
              head={
                <>
                  <th>Event</th>
                  <th class="hide-s">Type</th>
                  <th class="hide-s">Endpoint</th>
                  <th>Answer</th>
                  <th class="n hide-s">Attempt</th>
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
                  <td title={one.error?.message}>
                    <State
                      is={one.outcome === "success" ? "delivered" : "failed"}
                      says={outcomeText(one)}
                    />
                  </td>
                  <td class="n hide-s">{one.isProbe ? "probe" : one.number}</td>
                  <td class="n hide-m">
                    {one.durationMs === null ? "–" : lasting(one.durationMs)}
                  </td>
                  <td class="n">
                    <Ago at={one.at} />
                  </td>
                </>
              )}
            />
            <Pager cursors={page} show={(to) => filter({ cursor: to })} />
          </>
        )}
      </Answered>
      <Command
        text={[
          "petrel attempts",
          ...(tenant === "*" || endpoint !== undefined ? [] : [`--tenant ${tenant}`]),
          ...conditions.map(
            ([name, value]) =>
              `--${name} ${quoted(name === "endpoint" ? `${tenant}/${value}` : value)}`
          )
        ].join(" ")}
        request={curlCommand(`/v1/tenants/${tenant}/attempts${search === "" ? "" : `?${search}`}`)}
      />
    </>
  )
}
