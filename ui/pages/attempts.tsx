import type { LoggedAttempt } from "../../src/client/client.ts"
import { plainFlags } from "../command-line.ts"
import { curlCommand, withQuery } from "../curl.ts"
import { Choice, Filter, Since } from "../filters.tsx"
import { shownEndpoint, shownTenant } from "../frame.tsx"
import { List, usePage, whileNewest } from "../list.tsx"
import { Command, State } from "../parts.tsx"
import { petrel, session } from "../session.ts"
import { Ago, lasting } from "../times.tsx"
import { FirstEvent } from "./first-event.tsx"
import { DeliveryCells, DeliveryHeads, LogTabs } from "./log-parts.tsx"

const outcomeText = ({ error, status }: LoggedAttempt): string =>
  error === null ? String(status ?? "–") : error.class

const filters = ["endpoint", "event", "type", "outcome", "status", "error", "since", "until"]

/** Requests that were made to receivers, newest first. */
export const Attempts = () => {
  const tenant = shownTenant()
  const endpoint = shownEndpoint()
  const asked = usePage(
    "attempts",
    filters,
    (given, options) =>
      petrel.log.attempts(given as Parameters<typeof petrel.log.attempts>[0], options),
    whileNewest()
  )
  const { given } = asked
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
      <List
        asked={asked}
        items={(page) => page.attempts}
        keyOf={({ seq }) => seq}
        empty={
          Object.keys(given).length === 0 ? (
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
            <DeliveryHeads />
            <th>Answer</th>
            <th class="n hide-s">Attempt</th>
            <th class="n hide-m">Took</th>
            <th class="n">When</th>
          </>
        }
        row={(one) => (
          <>
            <DeliveryCells of={one} />
            <td title={one.error?.message}>
              <State
                is={one.outcome === "success" ? "delivered" : "failed"}
                says={outcomeText(one)}
              />
            </td>
            <td class="n hide-s">{one.isProbe ? "probe" : one.number}</td>
            <td class="n hide-m">{one.durationMs === null ? "–" : lasting(one.durationMs)}</td>
            <td class="n">
              <Ago at={one.at} />
            </td>
          </>
        )}
      />
      <Command
        text={`petrel attempts${plainFlags({
          tenant: tenant === "*" || endpoint !== undefined ? undefined : tenant,
          ...given,
          endpoint: endpoint && `${tenant}/${endpoint}`
        })}`}
        request={curlCommand(withQuery(`/v1/tenants/${tenant}/attempts`, given))}
      />
    </>
  )
}
