import { curlCommand, withQuery } from "../curl.ts"
import { Choice, Filter, Since } from "../filters.tsx"
import { shownTenant } from "../frame.tsx"
import { List, usePage, whileNewest } from "../list.tsx"
import { AttemptsMade, Command, State } from "../parts.tsx"
import { petrel, session } from "../session.ts"
import { Ago, lasting } from "../times.tsx"
import { FirstEvent } from "./first-event.tsx"
import { DeliveryCells, DeliveryHeads, LogTabs } from "./log-parts.tsx"

const states = ["waiting", "delivered", "dead-lettered", "discarded", "skipped"]

const filters = ["endpoint", "event", "type", "state", "status", "error", "since", "until"]

/** The log of deliveries, by filters that are in the address. */
export const Deliveries = () => {
  const asked = usePage(
    "deliveries",
    filters,
    (given, options) => petrel.log.list(given as Parameters<typeof petrel.log.list>[0], options),
    whileNewest()
  )
  const { given } = asked
  const curl = curlCommand(withQuery(`/v1/tenants/${shownTenant()}/deliveries`, given))
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
      <List
        asked={asked}
        items={(page) => page.deliveries}
        keyOf={({ seq, tenant }) => `${tenant} ${seq}`}
        empty={
          Object.keys(given).length === 0 ? (
            <>
              <p>
                Nothing was delivered yet: publish an event that an endpoint wants, and it is here
                within a second.
              </p>
              <FirstEvent />
            </>
          ) : (
            "No delivery matches these filters."
          )
        }
        head={
          <>
            <DeliveryHeads />
            <th>State</th>
            <th class="hide-s">Last answer</th>
            <th class="n hide-m">Attempts</th>
            <th class="n hide-m">Took</th>
            <th class="n">When</th>
          </>
        }
        row={(one) => (
          <>
            <DeliveryCells of={one} />
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
            <td class="n hide-m">{one.durationMs === null ? "–" : lasting(one.durationMs)}</td>
            <td class="n">
              <Ago at={one.at} />
            </td>
          </>
        )}
        below={(page) => (
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
        )}
      />
      <Command text={curl} request={curl} />
    </>
  )
}
