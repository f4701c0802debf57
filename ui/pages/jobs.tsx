import type { Job } from "../../src/client/client.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { shownTenant } from "../frame.tsx"
import { askedText, isOver, resultText, untilAllOver, untilOver } from "../job-texts.ts"
import { type BulkKind, isBulkKind, kinds } from "../jobs.ts"
import { List, usePage } from "../list.tsx"
import { Action, Answered, Command, count, EndpointLink, State } from "../parts.tsx"
import { address, query } from "../router.ts"
import { may, session } from "../session.ts"
import { Ago } from "../times.tsx"

/** The page of a job. */
export const jobPage = (tenant: string, kind: BulkKind, id: string): string =>
  address(["jobs", tenant, kind, id])

/** How far a job has come, and what came of it. */
export const JobProgress = ({ job }: { readonly job: Job }) => (
  <>
    <p>
      <State is={job.state} /> {count(job.progress?.done ?? 0)} of {count(job.progress?.total ?? 0)}{" "}
      are done.{" "}
      {isOver(job)
        ? `${resultText(job) || "It was ended where it was"}.`
        : "It goes on if this page is closed; its address shows it again."}
    </p>
    {!isOver(job) && job.problem !== undefined && <p class="bad">{job.problem}</p>}
    <progress
      aria-label="How far it has come"
      max={Math.max(1, job.progress?.total ?? 1)}
      value={job.progress?.done ?? 0}
    />
  </>
)

/** One job, watched until it is over. It goes on without the page. */
export const JobShown = ({
  id,
  kind,
  tenant
}: {
  readonly id: string
  readonly kind: BulkKind
  readonly tenant: string
}) => {
  const { cancel, get } = kinds[kind]
  const asked = useAsked(
    `${kind} ${tenant} ${id}`,
    (options) => get(tenant, id, options),
    untilOver(1_000)
  )
  return (
    <Answered asked={asked}>
      {(job) => (
        <div class="card" role="status">
          <JobProgress job={job} />{" "}
          <small>
            asked for by {job.by}, <Ago at={job.createdAt} />
            {job.endedAt !== undefined && (
              <>
                ; ended <Ago at={job.endedAt} />
              </>
            )}
          </small>{" "}
          {!isOver(job) && (
            <Action
              confirm="End it where it is? What was sent stays sent."
              does={async () => {
                await cancel(tenant, id)
                asked.again()
                return "it ends"
              }}
            >
              End it
            </Action>
          )}
        </div>
      )}
    </Answered>
  )
}

/** A job with what it was asked for. */
export const JobPage = ({
  id,
  kind,
  tenant
}: {
  readonly id: string
  readonly kind: BulkKind
  readonly tenant: string
}) => {
  const { get, path, title } = kinds[kind]
  const asked = useAsked(`asked ${kind} ${tenant} ${id}`, (options) => get(tenant, id, options))
  const curl = curlCommand(`/v1/tenants/${tenant}/${path}/${id}`)
  const { endpoint, ...conditions } = asked.value?.asked ?? {}
  return (
    <>
      {session.value?.endpoint === undefined && (
        <p>
          <a href={address(["jobs"], { kind, tenant })}>{title}</a>
        </p>
      )}
      <h1 class="mono">{id}</h1>
      <JobShown id={id} kind={kind} tenant={tenant} />
      {asked.value !== undefined && (
        <section class="card">
          <h2>What was asked for</h2>
          <dl class="facts">
            <dt>tenant</dt>
            <dd>{tenant === "*" ? "all" : tenant}</dd>
            {endpoint !== undefined && (
              <>
                <dt>endpoint</dt>
                <dd>
                  {tenant === "*" ? (
                    String(endpoint)
                  ) : (
                    <EndpointLink tenant={tenant} id={String(endpoint)} />
                  )}
                </dd>
              </>
            )}
            {Object.entries(conditions).map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>
                  {name === "since" || name === "until" ? (
                    <Ago at={String(value)} />
                  ) : Array.isArray(value) ? (
                    value.join(", ")
                  ) : (
                    String(value)
                  )}
                </dd>
              </>
            ))}
          </dl>
        </section>
      )}
      <Command text={curl} request={curl} />
    </>
  )
}

const starts = [
  ["replay", "Replay events", "replay:write"],
  ["recovery", "Recover an endpoint", "dead:write"],
  ["retry", "Try now what waits", "endpoints:write"]
] as const

/** Long work that sends or tries again: what was asked for, by kind. */
export const Jobs = () => {
  const tenant = shownTenant()
  const seen = Object.entries(kinds).filter(([, { mayBeSeen }]) => mayBeSeen())
  const { kind = seen[0]?.[0] } = query.value
  const shown = isBulkKind(kind) ? kind : "redelivery"
  const { list, path, title } = kinds[shown]
  const asked = usePage(
    `jobs ${shown}`,
    [],
    ({ tenant }, options) => list(tenant, options),
    untilAllOver
  )
  const curl = curlCommand(`/v1/tenants/${tenant}/${path}`)
  return (
    <>
      <div class="title">
        <h1>Jobs</h1>
        <div class="acts">
          {starts
            .filter(([, , scope]) => may(scope))
            .map(([name, text]) => (
              <a
                key={name}
                class="btn"
                href={address(["start", name], { tenant: query.value.tenant })}
              >
                {text}
              </a>
            ))}
        </div>
      </div>
      <nav class="tabs" aria-label="Kinds of jobs">
        {seen.map(([name, one]) => (
          <a
            key={name}
            href={address(["jobs"], { kind: name, tenant: query.value.tenant })}
            aria-current={name === shown ? "page" : undefined}
          >
            {one.title}
          </a>
        ))}
      </nav>
      <List
        asked={asked}
        items={(page) => page.jobs}
        keyOf={({ id }) => id}
        empty={
          shown === "redelivery" ? (
            <>
              None in the last week. Dead letters are sent again from{" "}
              <a href={address(["dead-letters"], { tenant: query.value.tenant })}>their list</a>.
            </>
          ) : (
            `No ${title.toLowerCase()} in the last week. The buttons above start one; it says first what it would send.`
          )
        }
        head={
          <>
            <th>Job</th>
            <th>State</th>
            <th class="n hide-s">Done</th>
            <th class="hide-s">Asked for</th>
            <th class="hide-s">Result</th>
            <th class="hide-t">By</th>
            <th class="n">When</th>
          </>
        }
        row={(job) => (
          <>
            <td class="mono">
              <a href={jobPage(job.tenant, shown, job.id)}>{job.id}</a>
            </td>
            <td>
              <State is={job.state} />
            </td>
            <td class="n hide-s">
              {count(job.progress?.done ?? 0)} of {count(job.progress?.total ?? 0)}
            </td>
            <td class="hide-s grows" title={askedText(job)}>
              {job.tenant === "*" ? "all tenants" : job.tenant} {askedText(job)}
            </td>
            <td class="hide-s" title={resultText(job)}>
              {isOver(job) ? resultText(job) || "–" : "–"}
            </td>
            <td class="hide-t">{job.by}</td>
            <td class="n">
              <Ago at={job.createdAt} />
            </td>
          </>
        )}
      />
      <Command text={curl} request={curl} />
    </>
  )
}
