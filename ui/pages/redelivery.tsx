import { useState } from "preact/hooks"
import type { RedeliveryPlan } from "../../src/client/client.ts"
import { plainFlags } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { failureText, useAsked } from "../data.ts"
import { isOver, leftText, resultText, untilAllOver } from "../job-texts.ts"
import { Command, count, State } from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"

/** Which dead letters are meant. Times as texts. */
export interface Selection {
  readonly tenant: string
  readonly endpoint?: string
  readonly type?: string
  readonly reason?: string
  readonly status?: string
  readonly since?: string
  readonly until?: string
}

type Request = Parameters<typeof petrel.jobs.redeliver>[0]

/** What was asked for in words; without any condition it is all of them. */
const conditionsOf = ({ tenant: _, ...conditions }: Selection) => Object.entries(conditions)

const requestOf = (selection: Selection): Request =>
  (conditionsOf(selection).length === 0
    ? { tenant: selection.tenant, all: true }
    : selection) as unknown as Request

const bodyOf = (selection: Selection) => {
  const { tenant: _, ...body } = requestOf(selection) as { tenant?: string }
  return body
}

/** Returns what a person would type to send again what is selected. */
export const redeliverCommand = (selection: Selection): string => {
  const { endpoint, tenant, ...others } = selection
  const of =
    endpoint === undefined
      ? { tenant: tenant === "*" ? undefined : tenant }
      : { endpoint: `${tenant}/${endpoint}` }
  return `petrel dead redeliver${plainFlags({ ...of, ...others }) || " --all"}`
}

/** The newest redeliveries: whoever comes back finds theirs, and that of somebody else. */
export const Redeliveries = ({ tenant }: { readonly tenant: string }) => {
  const asked = useAsked(
    `redeliveries ${tenant}`,
    (options) => petrel.jobs.listRedeliveries({ tenant, limit: 5 }, options).page(),
    untilAllOver
  )
  const jobs = asked.value?.jobs ?? []
  if (jobs.length === 0) return null
  return (
    <details class="card" open={jobs.some((job) => !isOver(job))}>
      <summary>Redeliveries</summary>
      {jobs.map((job) => (
        <p key={job.id}>
          <State is={job.state} />{" "}
          <a href={address(["dead-letters"], { ...query.value, job: job.id })}>
            {count(job.progress?.done ?? 0)} of {count(job.progress?.total ?? 0)}
          </a>{" "}
          by {job.by}, <Ago at={job.createdAt} /> <small>{isOver(job) && resultText(job)}</small>
        </p>
      ))}
      <p>
        <a href={address(["jobs"], { kind: "redelivery", tenant: query.value.tenant })}>
          All redeliveries
        </a>
      </p>
    </details>
  )
}

/** What would be sent, as it is shown, and the request for exactly that. */
interface Shown {
  readonly plan: RedeliveryPlan
  readonly request: Request
  /** It took the place of another plan, which was to be sent. */
  readonly isChanged?: true
}

/** What dies after it was counted is not among what is sent. */
const untilNow = (selection: Selection): Request =>
  ({ ...selection, until: selection.until ?? new Date().toISOString() }) as unknown as Request

const planOf = async (request: Request): Promise<Shown> => ({
  plan: await petrel.jobs.redeliver({ ...request, dryRun: true }),
  request
})

const isAlike = (one: RedeliveryPlan, other: RedeliveryPlan): boolean =>
  one.redeliver === other.redeliver &&
  one.selected === other.selected &&
  Object.keys(one.reasons).every((reason) => one.reasons[reason] === other.reasons[reason])

/** Says exactly what would be sent again, then does it. */
export const Redelivery = ({ selection }: { readonly selection: Selection }) => {
  const [shown, setShown] = useState<Shown | string>()
  const [isBusy, setBusy] = useState(false)
  const trying = (does: () => Promise<void>) => () => {
    if (isBusy) return
    setBusy(true)
    void does()
      .catch((error: unknown) => setShown(failureText(error)))
      .finally(() => setBusy(false))
  }
  const preview = trying(async () => setShown(await planOf(untilNow(selection))))
  // What is sent is selected anew: of what has become more or less, the new figures are shown first.
  const send = ({ plan, request }: Shown) =>
    trying(async () => {
      const now = await planOf(request)
      if (!isAlike(now.plan, plan)) {
        const newest = await planOf(untilNow(selection))
        return setShown({ ...newest, isChanged: true })
      }
      const job = await petrel.jobs.redeliver(request as Request & { dryRun?: false })
      setShown(undefined)
      filter({ job: job.id })
    })
  const plan = typeof shown === "object" ? shown.plan : undefined
  const which = conditionsOf(selection)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")
  return (
    <div class="card">
      <button type="button" onClick={preview} aria-disabled={isBusy}>
        What would be sent again?
      </button>{" "}
      <small>
        {which === "" ? "of all; the filters above narrow it" : `of those with ${which}`}
      </small>
      {typeof shown === "string" && (
        <p class="bad" role="alert">
          {shown}
        </p>
      )}
      {typeof shown === "object" && plan !== undefined && (
        <>
          <p role="status">
            {shown.isChanged === true && (
              <>
                <b>Nothing was sent: it is no longer what was shown.</b>{" "}
              </>
            )}
            {count(plan.redeliver)} of {count(plan.selected)} dead letters would be sent again:{" "}
            {Object.entries(plan.reasons).map(([reason, n], at) => (
              <>
                {at > 0 && ", "}
                <a href={address(["dead-letters"], { ...query.value, reason, cursor: undefined })}>
                  {count(n)} {reason}
                </a>
              </>
            ))}
            {plan.redeliver === 0 && "none"}.{" "}
            {leftText(plan)
              .map((text) => `${text}.`)
              .join(" ")}
          </p>
          <button
            type="button"
            class="main"
            aria-disabled={isBusy}
            disabled={plan.redeliver === 0}
            onClick={send(shown)}
          >
            Send {count(plan.redeliver)} again
          </button>
        </>
      )}
      <div class="typed">
        <Command
          text={`${redeliverCommand(selection)} --dry-run`}
          request={curlCommand(`/v1/tenants/${selection.tenant}/redeliveries`, "POST", {
            ...bodyOf(selection),
            dryRun: true
          })}
        />
      </div>
    </div>
  )
}
