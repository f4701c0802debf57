import { useMemo, useState } from "preact/hooks"
import type { Job } from "../../src/client/client.ts"
import { plainFlags, quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { type Field, valuesOf } from "../fields.ts"
import { Lines, Problems, TenantLine, useForm, useTenant, WordLine } from "../form.tsx"
import { shownEndpoint } from "../frame.tsx"
import { recoveryFields, replayFields, retryFields } from "../generated/forms.ts"
import { recoveryPlanText, replayPlanText, retryPlanText } from "../job-texts.ts"
import type { BulkKind } from "../jobs.ts"
import { Command, count } from "../parts.tsx"
import { address, go, query } from "../router.ts"
import { petrel, session } from "../session.ts"
import { jobPage } from "./jobs.tsx"

type PlanText = ReturnType<typeof replayPlanText>
type Values = Readonly<Record<string, unknown>>

/** What is asked for: whose, of which endpoint if of one, and under which conditions. */
interface Asked {
  readonly tenant: string
  readonly endpoint: string | undefined
  readonly values: Values
}

/** A kind of job that a form starts. */
interface Start {
  readonly title: string
  readonly says: string
  readonly fields: ReadonlyArray<Field>
  readonly needsEndpoint: boolean
  readonly plan: (asked: Asked) => Promise<PlanText>
  readonly start: (asked: Asked, idempotencyKey: string) => Promise<Job>
  /** The path of its request, and what it sends. */
  readonly request: (asked: Asked) => readonly [path: string, body: Values]
  /** What a person would type; undefined where no command does that. */
  readonly command: (asked: Asked) => string | undefined
}

// The fields were made from the document of the API, which judges what they hold.
const inputOf = <A,>(input: object): A => input as A

const replayBody = ({ endpoint, values }: Asked): Values => ({ endpoint, ...values })

const retryBody = ({ endpoint, values }: Asked): Values => {
  const { ignoreRetryAfter: _, ...narrowed } = values
  const isAll = endpoint === undefined && Object.keys(narrowed).length === 0
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...values,
    ...(isAll ? { all: true } : {})
  }
}

const starts: Readonly<Record<Exclude<BulkKind, "redelivery">, Start>> = {
  replay: {
    title: "Replay events",
    says: "Sends events of the past to an endpoint once more, at its pace and under the ids that they had.",
    fields: replayFields,
    needsEndpoint: true,
    plan: async (asked) =>
      replayPlanText(
        await petrel.jobs.replay({
          ...inputOf<Parameters<typeof petrel.jobs.replay>[0]>(replayBody(asked)),
          tenant: asked.tenant,
          dryRun: true
        })
      ),
    start: (asked, idempotencyKey) =>
      petrel.jobs.replay(
        { ...inputOf<{ endpoint: string }>(replayBody(asked)), tenant: asked.tenant },
        { idempotencyKey }
      ),
    request: (asked) => [`/v1/tenants/${asked.tenant}/replays`, replayBody(asked)],
    command: ({ endpoint, tenant, values }) =>
      `petrel replay --to ${quoted(`${tenant}/${endpoint || "ENDPOINT"}`)}${plainFlags(values)}`
  },
  recovery: {
    title: "Recover an endpoint",
    says: "Sends again all that failed at an endpoint since a time: waiting deliveries are tried now, and dead letters are sent again, each once.",
    fields: recoveryFields,
    needsEndpoint: true,
    plan: async ({ endpoint: id = "", tenant, values }) =>
      recoveryPlanText(
        await petrel.retries.recover({
          ...inputOf<{ since: string }>(values),
          ...{ tenant, id, dryRun: true }
        })
      ),
    start: ({ endpoint: id = "", tenant, values }, idempotencyKey) =>
      petrel.retries.recover(
        { ...inputOf<{ since: string }>(values), tenant, id },
        { idempotencyKey }
      ),
    request: ({ endpoint, tenant, values }) => [
      `/v1/tenants/${tenant}/endpoints/${endpoint || "ENDPOINT"}/recover`,
      values
    ],
    command: ({ endpoint, tenant, values }) =>
      `petrel endpoint recover ${quoted(`${tenant}/${endpoint || "ENDPOINT"}`)}${plainFlags(values)}`
  },
  retry: {
    title: "Try now what waits",
    says: "Lets what waits for its next attempt go on now, as after a fix: within the cap, rate and ramp of each endpoint.",
    fields: retryFields,
    needsEndpoint: false,
    plan: async (asked) =>
      retryPlanText(
        await petrel.retries.retry({ ...retryBody(asked), tenant: asked.tenant, dryRun: true })
      ),
    start: (asked, idempotencyKey) =>
      petrel.retries.retry({ ...retryBody(asked), tenant: asked.tenant }, { idempotencyKey }),
    request: (asked) => [`/v1/tenants/${asked.tenant}/retries`, retryBody(asked)],
    // The command is about one endpoint.
    command: ({ endpoint, tenant, values: { types, ...values } }) =>
      endpoint === undefined
        ? undefined
        : `petrel endpoint retry-now ${quoted(`${tenant}/${endpoint}`)}${(Array.isArray(types) ? types : []).map((type) => ` --type ${quoted(String(type))}`).join("")}${plainFlags(values)}`
  }
}

export const isStart = (text: string | undefined): text is keyof typeof starts =>
  text !== undefined && Object.hasOwn(starts, text)

/** Says what a job would do, and starts it. */
export const StartJob = ({ kind }: { readonly kind: keyof typeof starts }) => {
  const { command, fields, needsEndpoint, plan, request, says, start, title } = starts[kind]
  const [tenant, setTenant] = useTenant()
  const [endpoint, setEndpoint] = useState(shownEndpoint() ?? "")
  const { isBusy, lines, submit, typed, wrong } = useForm(
    fields,
    Object.fromEntries(
      Object.entries(query.value).filter(([name]) => fields.some((field) => field.name === name))
    )
  )
  const asked: Asked = { tenant, endpoint: endpoint || undefined, values: valuesOf(fields, typed) }
  const key = JSON.stringify(asked)
  const [found, setFound] = useState<{ readonly key: string; readonly plan: PlanText }>()
  // The same request, sent again after an answer that was lost, starts nothing twice.
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [key])
  const planned = found?.key === key ? found.plan : undefined
  const look = async () => {
    setFound({ key, plan: await plan(asked) })
    return undefined
  }
  const begin = submit(async () => {
    go(jobPage(tenant, kind, (await start(asked, idempotencyKey)).id))
    return undefined
  })
  const [path, body] = request({ ...asked, tenant: tenant || "TENANT" })
  const curl = curlCommand(path, "POST", body)
  return (
    <form class="page" onSubmit={submit(look)}>
      <div class="title">
        <h1>{title}</h1>
      </div>
      <p class="lead">{says}</p>
      <Problems texts={wrong.other} />
      <section class="card">
        <div class="form">
          <TenantLine is={tenant} set={setTenant} />
          {session.value?.endpoint === undefined && (
            <WordLine
              id="endpoint"
              required={needsEndpoint}
              placeholder={needsEndpoint ? "billing" : "all of the tenant's"}
              value={endpoint}
              set={setEndpoint}
            />
          )}
        </div>
        <Lines {...lines} />
        <div class="acts">
          <button type="submit" class={planned === undefined ? "main" : ""} aria-disabled={isBusy}>
            What would be sent?
          </button>
          <a
            class="btn"
            // A portal for one endpoint lists no jobs, and begins at its endpoint.
            href={
              session.value?.endpoint === undefined
                ? address(["jobs"], { kind, tenant: query.value.tenant })
                : address([])
            }
          >
            Cancel
          </a>
        </div>
        {planned !== undefined && (
          <div role="status">
            <p>{planned.says}.</p>
            {planned.of.length > 0 && (
              <dl class="facts">
                {planned.of.map(([name, n]) => (
                  <>
                    <dt>{name}</dt>
                    <dd>
                      {kind === "recovery" ? (
                        <a
                          href={address(["dead-letters"], {
                            ...{ tenant, endpoint, reason: name },
                            since: String(asked.values.since)
                          })}
                        >
                          {count(n)}
                        </a>
                      ) : (
                        count(n)
                      )}
                    </dd>
                  </>
                ))}
              </dl>
            )}
          </div>
        )}
        {planned !== undefined && (
          <div class="acts">
            <button
              type="button"
              class="main"
              disabled={planned.sends === 0}
              aria-disabled={isBusy}
              onClick={(event) => {
                // The second half of a double click was meant for what stood here before.
                if (event.detail <= 1) begin(event)
              }}
            >
              Start it
            </button>
          </div>
        )}
      </section>
      <Command text={command({ ...asked, tenant: tenant || "TENANT" }) ?? curl} request={curl} />
    </form>
  )
}
