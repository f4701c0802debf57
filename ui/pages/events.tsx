import { curlCommand } from "../curl.ts"
import { Filter, Since } from "../filters.tsx"
import { shownTenant } from "../frame.tsx"
import { List, usePage, whileNewest } from "../list.tsx"
import { Command, count } from "../parts.tsx"
import { address, query } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"
import { FirstEvent } from "./first-event.tsx"
import { LogTabs } from "./log-parts.tsx"

const states = [
  ["waiting", "waiting", "Waiting"],
  ["delivered", "delivered", "Delivered"],
  ["deadLettered", "dead-lettered", "Dead"],
  ["discarded", "discarded", "Discarded"],
  ["skipped", "skipped", "Skipped"]
] as const

const filters = ["type", "since", "until"]

/** Events, newest first, each with what became of it. */
export const Events = () => {
  const tenant = shownTenant()
  const { type } = query.value
  const asked = usePage("events", filters, petrel.log.events, whileNewest())
  const curl = curlCommand(
    `/v1/tenants/${tenant}/events${type === undefined ? "" : `?type=${encodeURIComponent(type)}`}`
  )
  return (
    <>
      <h1>Events</h1>
      <LogTabs shown="events" />
      <search class="filters" aria-label="Filters">
        <Filter name="type" hint="invoice.*" />
        <Since />
      </search>
      <List
        asked={asked}
        items={(page) => page.events}
        keyOf={({ seq, tenant }) => `${tenant} ${seq}`}
        empty={
          Object.keys(asked.given).length > 0 ? (
            "No event matches these filters."
          ) : (
            <>
              <p>No event was published yet: publish one, and it is here within a second.</p>
              <FirstEvent />
            </>
          )
        }
        head={
          <>
            <th>Event</th>
            <th class="below-s">Type</th>
            <th class="hide-s">Tenant</th>
            {states.map(([name, , title]) => (
              <th key={name} class="n">
                {title}
              </th>
            ))}
            <th class="hide-s">Came by</th>
            <th class="n">When</th>
          </>
        }
        row={(one) => (
          <>
            <td class="mono">
              <a href={address(["events", one.tenant, one.id])}>{one.id}</a>
            </td>
            <td class="below-s">{one.type ?? "–"}</td>
            <td class="hide-s">{one.tenant}</td>
            {states.map(([name, state]) => (
              <td key={name} class="n">
                {one.rounds[name] === 0 ? (
                  <span class="sub">0</span>
                ) : (
                  <a
                    href={address(["deliveries"], {
                      tenant: one.tenant,
                      event: one.id,
                      state
                    })}
                  >
                    {count(one.rounds[name])}
                  </a>
                )}
              </td>
            ))}
            <td class="hide-s">{one.channel ?? "–"}</td>
            <td class="n">
              <Ago at={one.at} />
            </td>
          </>
        )}
      />
      <Command
        text={`petrel events${tenant === "*" ? "" : ` --tenant ${tenant}`}${type === undefined ? "" : ` --type '${type}'`}`}
        request={curl}
      />
    </>
  )
}
