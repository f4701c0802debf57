import { useAsked } from "../data.ts"
import { Choice, Filter, Since, sinceTime } from "../filters.tsx"
import { shownEndpoint, shownTenant } from "../frame.tsx"
import { redeliveryFields } from "../generated/forms.ts"
import {
  Answered,
  AttemptsMade,
  deliveryPage,
  EndpointLink,
  Pager,
  Rows,
  State
} from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { may, petrel, session } from "../session.ts"
import { Ago } from "../times.tsx"
import { JobShown } from "./jobs.tsx"
import { Redeliveries, Redelivery, type Selection } from "./redelivery.tsx"

/** The reasons that the API knows. */
const reasons = redeliveryFields.flatMap(({ kind, name }) =>
  name === "reason" && kind.is === "choice" ? kind.options : []
)

/** The conditions that the address has, as the API takes them. */
const conditions = () => {
  const { reason, since, status, type, until } = query.value
  const given = {
    ...{ endpoint: shownEndpoint(), type, reason, status, until },
    since: since === undefined ? undefined : sinceTime(since)
  }
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== "")
  ) as Omit<Selection, "tenant">
}

/** Deliveries that ended without success, and sending them again. */
export const DeadLetters = () => {
  const tenant = shownTenant()
  const { cursor, job, open = "true" } = query.value
  const selection: Selection = { tenant, ...conditions() }
  const key = JSON.stringify(selection)
  // A portal's own endpoint is no filter.
  const isNarrowed = Object.keys(conditions()).some(
    (name) => name !== "endpoint" || query.value.endpoint !== undefined
  )
  const asked = useAsked(
    `dead ${key} ${open} ${cursor}`,
    (options) =>
      petrel.deadLetters
        .list(
          { ...selection, open: open === "true" ? "true" : undefined } as Parameters<
            typeof petrel.deadLetters.list
          >[0],
          options
        )
        .page(cursor),
    cursor === undefined ? 5_000 : undefined
  )
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
      {may("dead:write") && <Redelivery key={key} selection={selection} />}
      {may("dead:write") && session.value?.endpoint === undefined && (
        <Redeliveries tenant={tenant} />
      )}
      <Answered asked={asked}>
        {(page) => (
          <>
            <Rows
              items={page.deadLetters}
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
                  <th class="hide-s">Endpoint</th>
                  <th>Reason</th>
                  <th class="hide-s">Last answer</th>
                  <th class="n hide-s">Attempts</th>
                  <th class="n">When</th>
                </>
              }
              row={(one) => (
                <>
                  <td class="mono">
                    <a href={deliveryPage(one.tenant, `${one.event}.${one.endpoint}`)}>
                      {one.event}
                    </a>
                  </td>
                  <td class="hide-s">
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
            <Pager cursors={page} show={(to) => filter({ cursor: to })} />
          </>
        )}
      </Answered>
    </>
  )
}
