import type { Job } from "../../src/client/client.ts"
import { plainFlags } from "../command-line.ts"
import { useAsked } from "../data.ts"
import { valuesOf } from "../fields.ts"
import { Lines, Problems, useForm } from "../form.tsx"
import { auditFields } from "../generated/forms.ts"
import { isOver, untilAllOver, untilOver } from "../job-texts.ts"
import { List, Rows, usePage } from "../list.tsx"
import { Action, Answered, Command, count, deliveryPage, EndpointLink, State } from "../parts.tsx"
import { address, go, query } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago, lasting } from "../times.tsx"

/** What an audit found, as far as the page shows it (`AuditReport` in the history of the job). */
interface Report {
  readonly verdict: "clean" | "problems" | "unvouched"
  readonly events: { readonly stored: number; readonly unreached: number }
  readonly facts: { readonly read: number }
  readonly deliveries: Readonly<Record<string, number>>
  readonly problems: Readonly<Record<string, number>>
  readonly listed: ReadonlyArray<Problem>
  readonly cautions: ReadonlyArray<{ readonly kind: string; readonly says: string }>
  readonly ms: number
}

interface Problem {
  readonly kind: string
  readonly tenant?: string
  readonly endpoint?: string
  readonly event?: string
  readonly eventSeq?: number
  readonly says: string
}

const verdicts = {
  clean: ["ok", "Every event reached every endpoint that it was for, or its end is recorded."],
  problems: ["problem", "Something is missing or contradictory: see each below."],
  unvouched: ["warn", "Nothing is wrong in the streams, but they do not reach back far enough."]
} as const

/**
 * The figures that people look for, with the state that the log has for them: those that have begun
 * are all below, and what is overdue or missing is listed as a problem. The others are in the answer
 * of the API.
 */
const figures = [
  ["begun", "deliveries begun", undefined],
  ["delivered", "delivered", "delivered"],
  ["deadLettered", "dead letters", "dead-lettered"],
  ["discarded", "discarded", "discarded"],
  ["pending", "waiting, in time", "waiting"],
  ["overdue", "overdue", undefined],
  ["missing", "missing", undefined]
] as const

const ProblemRow = ({ of }: { readonly of: Problem }) => {
  const { endpoint, event, eventSeq, kind, says, tenant } = of
  const name = event ?? (eventSeq === undefined ? undefined : `evt_${eventSeq}`)
  return (
    <>
      <td>
        <State is="problem" says={kind} />
      </td>
      <td>
        {tenant === undefined || endpoint === undefined ? (
          (tenant ?? "–")
        ) : (
          <EndpointLink tenant={tenant} id={endpoint} />
        )}
      </td>
      <td class="mono">
        {name === undefined || tenant === undefined ? (
          (name ?? "–")
        ) : (
          <a
            href={
              endpoint === undefined
                ? address(["events", tenant, name])
                : deliveryPage(tenant, `${name}.${endpoint}`)
            }
          >
            {name}
          </a>
        )}
      </td>
      <td class="wrap">{says}</td>
    </>
  )
}

const Found = ({
  of,
  report
}: {
  /** Which deliveries it is about, as the filters of their list. */
  readonly of: Readonly<Record<string, string | undefined>>
  readonly report: Report
}) => {
  const { cautions, deliveries, events, facts, listed, ms, problems, verdict } = report
  const [look, says] = verdicts[verdict]
  const total = Object.values(problems).reduce((sum, n) => sum + n, 0)
  return (
    <>
      <section class={`card verdict ${verdict === "clean" ? "" : "warn"}`}>
        <div class="mark" aria-hidden="true">
          {verdict === "clean" ? "✓" : "▲"}
        </div>
        <div>
          <strong>
            <State is={look} says={verdict} /> {says}
          </strong>
          <p>
            <a href={address(["events"], of)}>{count(events.stored)} events</a> and{" "}
            {count(facts.read)} facts were read in {lasting(ms)}
            {events.unreached > 0 && `; ${count(events.unreached)} events are not routed yet`}.
          </p>
        </div>
      </section>
      <section class="card">
        <dl class="facts">
          {figures.map(([name, text, state]) => (
            <>
              <dt>{text}</dt>
              <dd>
                {state === undefined ? (
                  count(deliveries[name])
                ) : (
                  <a href={address(["deliveries"], { ...of, state })}>{count(deliveries[name])}</a>
                )}
              </dd>
            </>
          ))}
        </dl>
      </section>
      {cautions.map(({ kind, says: text }) => (
        <div key={kind} class="note warn">
          <b aria-hidden="true">▲</b>
          <div>{text}</div>
        </div>
      ))}
      {total > 0 && (
        <>
          <h2>
            {count(total)} problems
            {listed.length < total && `, of which the first ${count(listed.length)} are shown`}
          </h2>
          <Rows
            items={listed}
            empty=""
            head={
              <>
                <th>Kind</th>
                <th>Endpoint</th>
                <th>Event</th>
                <th>What</th>
              </>
            }
            row={(one) => <ProblemRow of={one} />}
          />
        </>
      )}
    </>
  )
}

const filtersOf = ({ asked: { since, tenant, until } }: Job) => {
  const text = (value: unknown) => (typeof value === "string" ? value : undefined)
  return { tenant: text(tenant), since: text(since), until: text(until) }
}

/** What an audit looks at: of whom, and of which time. */
export const auditedText = ({ asked }: Job): string => {
  const { since, tenant, until } = asked
  return [
    tenant === undefined ? "all tenants" : String(tenant),
    ...(since === undefined ? [] : [`since ${since}`]),
    ...(until === undefined ? [] : [`until ${until}`])
  ].join(", ")
}

const OneAudit = ({ id }: { readonly id: string }) => {
  const asked = useAsked(
    `audit ${id}`,
    (options) => petrel.jobs.getAudit({ job: id }, options),
    untilOver(1_000)
  )
  return (
    <>
      <p>
        <a href={address(["audit"])}>All audits</a>
      </p>
      <Answered asked={asked}>
        {(job) => (
          <>
            <section class="card" role="status">
              <State is={job.state} /> {auditedText(job)}; asked for by {job.by},{" "}
              <Ago at={job.createdAt} />
              {!isOver(job) && (
                <>
                  {" "}
                  <progress
                    aria-label="How far it has come"
                    max={job.progress?.total ?? 1}
                    value={job.progress?.done ?? 0}
                  />{" "}
                  {count(job.progress?.done)} of {count(job.progress?.total)} messages. It goes on
                  if this page is closed.{" "}
                  <Action
                    does={async () => {
                      await petrel.jobs.cancelAudit({ job: id })
                      asked.again()
                      return "it ends"
                    }}
                  >
                    End it
                  </Action>
                </>
              )}
              {job.problem !== undefined && <p class="bad">{job.problem}</p>}
            </section>
            {job.result !== undefined && (
              <Found of={filtersOf(job)} report={job.result as unknown as Report} />
            )}
          </>
        )}
      </Answered>
    </>
  )
}

const Start = () => {
  const { isBusy, lines, submit, typed, wrong } = useForm(auditFields)
  const body = valuesOf(auditFields, typed)
  const start = async () => {
    go(address(["audit"], { job: (await petrel.jobs.audit(body)).id }))
    return undefined
  }
  return (
    <form class="card page" onSubmit={submit(start)}>
      <p class="small">
        It reads the streams and nothing else, and shows that every event reached every endpoint
        that it was for, or what became of it.
      </p>
      <Problems texts={wrong.other} />
      <Lines {...lines} />
      <div class="acts">
        <button type="submit" class="main" aria-disabled={isBusy}>
          Start an audit
        </button>
      </div>
      <Command text={`petrel audit${plainFlags(body)}`} />
    </form>
  )
}

/** Returns what an audit found; undefined where it has not come to an end. */
export const verdictIn = ({ result }: Job): Report["verdict"] | undefined =>
  ((result ?? {}) as Partial<Report>).verdict

const looks = { clean: "ok", problems: "problem", unvouched: "warn" }

/** The verdict of an audit, or else how far it has come. */
export const Verdict = ({ of }: { readonly of: Job }) => {
  const verdict = verdictIn(of)
  return verdict === undefined ? (
    <State is={of.state} />
  ) : (
    <State is={looks[verdict]} says={verdict} />
  )
}

const AllAudits = () => {
  const asked = usePage(
    "audits",
    [],
    (_, options) => petrel.jobs.listAudits({ limit: 50 }, options),
    untilAllOver
  )
  return (
    <>
      <Start />
      <List
        asked={asked}
        items={(page) => page.jobs}
        empty="None was run yet, or those that were have been forgotten."
        head={
          <>
            <th>Audit</th>
            <th>Result</th>
            <th class="hide-s">Of</th>
            <th class="hide-s">By</th>
            <th class="n">When</th>
          </>
        }
        row={(job) => (
          <>
            <td class="mono">
              <a href={address(["audit"], { job: job.id })}>{job.id}</a>
            </td>
            <td>
              <Verdict of={job} />
            </td>
            <td class="hide-s">{auditedText(job)}</td>
            <td class="hide-s">{job.by}</td>
            <td class="n">
              <Ago at={job.createdAt} />
            </td>
          </>
        )}
      />
    </>
  )
}

/** Audits: start one, watch it, and see what it found. */
export const Audit = () => {
  const { job } = query.value
  return (
    <>
      <h1>Audit</h1>
      {job === undefined ? <AllAudits /> : <OneAudit key={job} id={job} />}
    </>
  )
}
