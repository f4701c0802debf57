import { useState } from "preact/hooks"
import type { Job, RedeliveryPlan } from "../../src/client/client.ts"
import { problemText, useAsked } from "../data.ts"
import { shownEndpoint, shownTenant } from "../frame.tsx"
import {
  Ago,
  Answered,
  Command,
  count,
  deliveryPage,
  EndpointLink,
  Pager,
  Rows,
  State
} from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { may, petrel } from "../session.ts"

const JobShown = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const asked = useAsked(
    `redelivery ${id}`,
    (options) => petrel.jobs.getRedelivery({ tenant, job: id }, options),
    1_000
  )
  return (
    <Answered asked={asked}>
      {({ problem, progress, state }: Job) => (
        <div class="card" role="status">
          <State is={state} /> {count(progress?.done ?? 0)} of {count(progress?.total ?? 0)} are
          sent again.{" "}
          {state === "done" || state === "failed"
            ? (problem ?? "")
            : "It goes on if this page is closed; its address shows it again."}{" "}
          <progress max={progress?.total ?? 1} value={progress?.done ?? 0} />
        </div>
      )}
    </Answered>
  )
}

interface Selection {
  readonly tenant: string
  readonly endpoint?: string
  readonly all?: boolean
}

/** Says exactly what would be sent again, then does it. */
const Redelivery = ({ selection }: { readonly selection: Selection }) => {
  const [plan, setPlan] = useState<RedeliveryPlan | string>()
  const trying = (does: () => Promise<void>) => () =>
    void does().catch((error: unknown) => setPlan(problemText(error)))
  const preview = trying(async () => {
    setPlan(await petrel.jobs.redeliver({ ...selection, dryRun: true }))
  })
  const send = trying(async () => {
    const job = await petrel.jobs.redeliver(selection)
    setPlan(undefined)
    filter({ job: job.id })
  })
  return (
    <div class="card">
      <button type="button" onClick={preview}>
        What would be sent again?
      </button>
      {typeof plan === "string" && (
        <p class="bad" role="alert">
          {plan}
        </p>
      )}
      {typeof plan === "object" && (
        <>
          <p role="status">
            {count(plan.redeliver)} of {count(plan.selected)} dead letters would be sent again:{" "}
            {Object.entries(plan.reasons)
              .map(([reason, n]) => `${count(n)} ${reason}`)
              .join(", ") || "none"}
            . {count(plan.before)} were sent again before.
          </p>
          <button type="button" class="main" disabled={plan.redeliver === 0} onClick={send}>
            Send {count(plan.redeliver)} again
          </button>
        </>
      )}
    </div>
  )
}

/** Deliveries that ended without success, and sending them again. */
export const DeadLetters = () => {
  const tenant = shownTenant()
  const endpoint = shownEndpoint()
  const { cursor, job, open = "true" } = query.value
  const asked = useAsked(
    `dead ${tenant} ${endpoint} ${open} ${cursor}`,
    (options) =>
      petrel.deadLetters
        .list({ tenant, endpoint, open: open === "true" ? "true" : undefined }, options)
        .page(cursor),
    cursor === undefined ? 5_000 : undefined
  )
  const selection: Selection = {
    tenant,
    ...(endpoint === undefined ? { all: true } : { endpoint })
  }
  const named = endpoint === undefined ? "--all" : `--endpoint ${tenant}/${endpoint}`
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
      {job !== undefined && <JobShown tenant={tenant} id={job} />}
      {may("dead:write") && <Redelivery key={`${tenant}/${endpoint}`} selection={selection} />}
      <Answered asked={asked}>
        {(page) => (
          <>
            <Rows
              items={page.deadLetters}
              opens={(one) => deliveryPage(one.tenant, `${one.event}.${one.endpoint}`)}
              empty="There are none: whatever ended was delivered, or was sent again."
              head={
                <>
                  <th>Event</th>
                  <th>Endpoint</th>
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
                  <td>
                    <EndpointLink tenant={one.tenant} id={one.endpoint} />
                  </td>
                  <td>
                    <a
                      href={address(["dead-letters"], {
                        tenant: query.value.tenant,
                        endpoint: one.endpoint
                      })}
                    >
                      <State is="dead-lettered" says={one.reason} />
                    </a>
                  </td>
                  <td class="hide-s">{one.lastErrorClass ?? one.lastStatus ?? "–"}</td>
                  <td class="n hide-s">{one.attempts}</td>
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
      <Command text={`petrel dead redeliver ${named} --dry-run`} />
    </>
  )
}
