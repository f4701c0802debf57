import { useState } from "preact/hooks"
import type { Job, RedeliveryPlan } from "../../src/client/client.ts"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { problemText, useAsked } from "../data.ts"
import { Action, Ago, Answered, Command, count, State } from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { petrel } from "../session.ts"

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
  const flags = [
    ...(endpoint === undefined
      ? tenant === "*"
        ? []
        : [`--tenant ${quoted(tenant)}`]
      : [`--endpoint ${quoted(`${tenant}/${endpoint}`)}`]),
    ...Object.entries(others).map(([name, value]) => `--${name} ${quoted(String(value))}`)
  ]
  return `petrel dead redeliver ${flags.length === 0 ? "--all" : flags.join(" ")}`
}

const isOver = ({ state }: Job): boolean => state !== "waiting" && state !== "running"

const number = (value: unknown): number => (typeof value === "number" ? value : 0)

/** What came of it, once it is over. */
const resultText = ({ problem, result }: Job): string => {
  if (result === undefined) return problem ?? ""
  const skipped = Array.isArray(result.skipped) ? (result.skipped as Array<{ count: number }>) : []
  const left = skipped.reduce((sum, one) => sum + one.count, 0) + number(result.skippedElsewhere)
  return [
    `${count(number(result.redelivered))} were sent again`,
    ...(number(result.before) > 0
      ? [
          `${count(number(result.before))} had been sent again before, by this or another redelivery`
        ]
      : []),
    ...(number(result.deliveredLate) > 0
      ? [`${count(number(result.deliveredLate))} had arrived after all`]
      : []),
    ...(number(result.gone) > 0 ? [`${count(number(result.gone))} are not kept any more`] : []),
    ...(left > 0 ? [`${count(left)} are for endpoints that take nothing now`] : [])
  ].join("; ")
}

/** One redelivery, watched. It goes on without the page. */
export const RedeliveryShown = ({
  id,
  tenant
}: {
  readonly id: string
  readonly tenant: string
}) => {
  const asked = useAsked(
    `redelivery ${tenant} ${id}`,
    (options) => petrel.jobs.getRedelivery({ tenant, job: id }, options),
    1_000
  )
  return (
    <Answered asked={asked}>
      {(job) => (
        <div class="card" role="status">
          <p>
            <State is={job.state} /> {count(job.progress?.done ?? 0)} of{" "}
            {count(job.progress?.total ?? 0)} are done.{" "}
            {isOver(job)
              ? `${resultText(job)}.`
              : "It goes on if this page is closed; its address shows it again."}
          </p>
          <progress
            aria-label="How far it has come"
            max={job.progress?.total ?? 1}
            value={job.progress?.done ?? 0}
          />{" "}
          <small>
            asked for by {job.by}, <Ago at={job.createdAt} />
          </small>{" "}
          {!isOver(job) && (
            <Action
              confirm="End it where it is? What was sent again stays sent."
              does={async () => {
                await petrel.jobs.cancelRedelivery({ tenant, job: id })
                asked.again()
                return "it ends"
              }}
            >
              End it
            </Action>
          )}{" "}
          <a class="btn" href={address(["dead-letters"], { ...query.value, job: undefined })}>
            Close
          </a>
        </div>
      )}
    </Answered>
  )
}

/** The newest redeliveries: whoever comes back finds theirs, and that of somebody else. */
export const Redeliveries = ({ tenant }: { readonly tenant: string }) => {
  const asked = useAsked(
    `redeliveries ${tenant}`,
    (options) => petrel.jobs.listRedeliveries({ tenant, limit: 5 }, options).page(),
    3_000
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
    </details>
  )
}

/** Says exactly what would be sent again, then does it. */
export const Redelivery = ({ selection }: { readonly selection: Selection }) => {
  const [plan, setPlan] = useState<RedeliveryPlan | string>()
  const [isBusy, setBusy] = useState(false)
  const trying = (does: () => Promise<void>) => () => {
    setBusy(true)
    void does()
      .catch((error: unknown) => setPlan(problemText(error)))
      .finally(() => setBusy(false))
  }
  const preview = trying(async () => {
    setPlan(await petrel.jobs.redeliver({ ...requestOf(selection), dryRun: true }))
  })
  const send = trying(async () => {
    const job = await petrel.jobs.redeliver(requestOf(selection) as Request & { dryRun?: false })
    setPlan(undefined)
    filter({ job: job.id })
  })
  const which = conditionsOf(selection)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")
  return (
    <div class="card">
      <button type="button" onClick={preview} disabled={isBusy}>
        What would be sent again?
      </button>{" "}
      <small>
        {which === "" ? "of all; the filters above narrow it" : `of those with ${which}`}
      </small>
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
          <button
            type="button"
            class="main"
            disabled={isBusy || plan.redeliver === 0}
            onClick={send}
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
