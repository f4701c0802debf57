import { Choice, Filter, Since } from "../filters.tsx"
import { shownTenant } from "../frame.tsx"
import { redeliveryFields } from "../generated/forms.ts"
import { List, usePage, whileNewest } from "../list.tsx"
import { AttemptsMade, deliveryPage, EndpointLink, State } from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { may, petrel, session } from "../session.ts"
import { Ago } from "../times.tsx"
import { JobShown } from "./jobs.tsx"
import { Redeliveries, Redelivery, type Selection } from "./redelivery.tsx"

/** The reasons that the API knows. */
const reasons = redeliveryFields.flatMap(({ kind, name }) =>
  name === "reason" && kind.is === "choice" ? kind.options : []
)

const filters = ["endpoint", "type", "reason", "status", "since", "until"]

/** Deliveries that ended without success, and sending them again. */
export const DeadLetters = () => {
  const tenant = shownTenant()
  const { job, open = "true" } = query.value
  // A portal's own endpoint is no filter.
  const isNarrowed = filters.some((name) => query.value[name] !== undefined)
  const asked = usePage(
    `dead ${open}`,
    filters,
    (given, options) =>
      petrel.deadLetters.list(
        { ...given, open: open === "true" ? "true" : undefined } as Parameters<
          typeof petrel.deadLetters.list
        >[0],
        options
      ),
    whileNewest()
  )
  // What is sent again is what was counted, and what is listed.
  const selection: Selection = { tenant, ...asked.given }
  return (
    <>
      <div class="title">
        <h1>Dead letters</h1>
        <label>
          <input
            type="checkbox"
            checked={open === "true"}
            onChange={(event) =>
              filter({ open: event.currentTarget.checked ? undefined : "false", cursor: undefined })
            }
          />{" "}
          only those not sent again
        </label>
      </div>
      <search class="filters" aria-label="Filters">
        {session.value?.endpoint === undefined && tenant !== "*" && (
          <Filter name="endpoint" hint="billing" />
        )}
        <Filter name="type" hint="invoice.*" />
        <Choice name="reason" options={reasons} />
        <Filter name="status" hint="503 or 5xx" />
        <Since />
      </search>
      {job !== undefined && (
        <>
          <JobShown key={job} kind="redelivery" tenant={tenant} id={job} />
          <p>
            <a href={address(["dead-letters"], { ...query.value, job: undefined })}>
              Back to the list alone
            </a>
          </p>
        </>
      )}
      {may("dead:write") && <Redelivery key={JSON.stringify(selection)} selection={selection} />}
      {may("dead:write") && session.value?.endpoint === undefined && (
        <Redeliveries tenant={tenant} />
      )}
      <List
        asked={asked}
        items={(page) => page.deadLetters}
        keyOf={({ id, tenant }) => `${tenant} ${id}`}
        empty={
          isNarrowed
            ? "No dead letter matches these filters."
            : open === "true"
              ? "There are none: whatever ended was delivered, sent again or discarded."
              : "There are none: whatever ended was delivered or discarded."
        }
        head={
          <>
            <th>Event</th>
            <th class="below-s">Endpoint</th>
            <th>Reason</th>
            <th class="hide-s">Last answer</th>
            <th class="n hide-s">Attempts</th>
            <th class="n">When</th>
          </>
        }
        row={(one) => (
          <>
            <td class="mono">
              <a href={deliveryPage(one.tenant, `${one.event}.${one.endpoint}`)}>{one.event}</a>
            </td>
            <td class="below-s">
              <EndpointLink tenant={one.tenant} id={one.endpoint} />
            </td>
            <td>
              <a
                href={address(["dead-letters"], {
                  ...query.value,
                  reason: one.reason,
                  cursor: undefined
                })}
              >
                <State is="dead-lettered" says={one.reason} />
              </a>
            </td>
            <td class="hide-s">{one.lastErrorClass ?? one.lastStatus ?? "–"}</td>
            <td class="n hide-s">
              <AttemptsMade of={{ ...one, delivery: `${one.event}.${one.endpoint}` }} />
            </td>
            <td class="n">
              <Ago at={one.deadAt} />
            </td>
          </>
        )}
      />
    </>
  )
}
