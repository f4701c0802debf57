import type { Alert, Job, Stats } from "../../src/client/client.ts"
import { type Asked, useAsked } from "../data.ts"
import { shownTenant } from "../frame.tsx"
import { Rows } from "../list.tsx"
import {
  Answered,
  Command,
  Conditions,
  count,
  deliveryPage,
  EndpointLink,
  State
} from "../parts.tsx"
import { address, query } from "../router.ts"
import { may, petrel } from "../session.ts"
import { Ago, lasting } from "../times.tsx"
import { Answers } from "./answers.tsx"
import { auditedText, Verdict, verdictIn } from "./audit.tsx"
import { FirstEvent } from "./first-event.tsx"
import { EndpointCounts } from "./system.tsx"
import { ChooseTenant } from "./tenants.tsx"

const hoursOfADay = 24

/** A line of the rates of success or attempts of hours. */
const Line = ({
  values,
  says
}: {
  readonly values: ReadonlyArray<number>
  readonly says: string
}) => {
  const most = Math.max(1, ...values)
  // Of a log that began within the day, the hours before it are left out.
  const before = Math.max(0, hoursOfADay - values.length)
  const points = (values.length === 1 ? [...values, ...values] : values)
    .map((value, at, { length }) => {
      // One hour alone is a short line at the end.
      const x = values.length === 1 ? hoursOfADay - 2 + at : before + at
      return `${(x / (Math.max(hoursOfADay, length) - 1)) * 120},${30 - (value / most) * 28}`
    })
    .join(" ")
  return (
    <svg viewBox="0 0 120 32" preserveAspectRatio="none" role="img" aria-label={says}>
      <polyline
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        // The drawing is wider than it is high: without it, steep lines are thick.
        vector-effect="non-scaling-stroke"
        points={points}
      />
    </svg>
  )
}

const percent = (rate: number | null): string =>
  rate === null ? "–" : `${(rate * 100).toFixed(rate === 1 ? 0 : 2)}`

const Figures = ({ stats, tenant }: { readonly stats: Stats; readonly tenant: string }) => {
  const { periods, whole } = stats
  const drawn = whole.attempts === 0 ? [] : periods
  const list = (filters: Record<string, string>) =>
    address(["attempts"], { tenant, since: "1d", ...filters })
  return (
    <>
      <section class="row">
        <div class="card fig">
          <a class="whole" href={list({})}>
            <span>Attempts in a day</span>
            <b>{count(whole.attempts)}</b>
          </a>
          <Line values={drawn.map(({ attempts }) => attempts)} says="Attempts by hour" />
          <small>
            <a href={list({ outcome: "success" })}>{count(whole.succeeded)} succeeded</a>
          </small>
        </div>
        <a class="card fig" href={list({ outcome: "failure" })}>
          <span>Success</span>
          <b>
            {percent(whole.successRate)}
            {whole.successRate !== null && <em>%</em>}
          </b>
          <Line
            values={drawn.map(({ successRate }) => successRate ?? 1)}
            says="Rate of success by hour"
          />
          <small>{count(whole.failed)} attempts failed</small>
        </a>
        <a class="card fig" href={list({ outcome: "success" })}>
          <span>Answer of receivers, p99</span>
          <b>{whole.latencyMs === null ? "–" : lasting(whole.latencyMs.p99)}</b>
          <Line values={drawn.map(({ latencyMs }) => latencyMs?.p99 ?? 0)} says="p99 by hour" />
          <small>
            {whole.latencyMs === null
              ? "nothing was sent"
              : `p50 ${lasting(whole.latencyMs.p50)} · p95 ${lasting(whole.latencyMs.p95)}`}
          </small>
        </a>
      </section>
      <Answers of={whole.answers} place={{ tenant }} />
    </>
  )
}

/** What the installation and the alerts say together; nothing is said to be well before all is known. */
const verdictOf = (
  problems: number,
  alerts: number | undefined,
  isCounted: boolean,
  isOfTenant: boolean
): string => {
  if (problems > 0)
    return problems === 1 ? "There is one problem." : `There are ${problems} problems.`
  if (alerts === undefined) return "The installation has no problem; its alerts are not known yet."
  if (alerts > 0)
    return alerts === 1 ? "One alert is raised." : `${count(alerts)} alerts are raised.`
  return `No problem ${isOfTenant ? "of this tenant " : ""}is known${isCounted ? "" : "; the endpoints are still being counted"}.`
}

/** What the newest audit that has ended found, and when. */
const LastAudit = ({ of }: { readonly of: Job | undefined }) => (
  <p>
    Last audit:{" "}
    {of === undefined ? (
      <>
        none yet; <a href={address(["audit"])}>start one</a>
      </>
    ) : (
      <>
        <a href={address(["audit"], { job: of.id })}>
          <Verdict of={of} />
        </a>{" "}
        of {auditedText(of)}, <Ago at={of.endedAt ?? of.createdAt} />
      </>
    )}
  </p>
)

const SystemVerdict = ({
  alerts,
  isOfTenant
}: {
  readonly alerts: number | undefined
  /** True if the alerts are those of one tenant: the rest is said of all. */
  readonly isOfTenant: boolean
}) => {
  const asked = useAsked("status", (options) => petrel.system.status({}, options), 5_000)
  const audits = useAsked(
    "last audits",
    (options) => petrel.jobs.listAudits({ limit: 20 }, options).page(),
    30_000
  )
  const last = audits.value?.jobs.find((job) => verdictIn(job) !== undefined)
  return (
    <Answered asked={asked}>
      {({ deadLetters, deliveries, endpoints, problems }) => {
        // What an audit misses is a problem of the status, too, where the console found it by itself.
        const isMissed =
          last !== undefined &&
          verdictIn(last) === "problems" &&
          !problems.some(({ code }) => code === "deliveries-missing")
        const found = problems.length + (isMissed ? 1 : 0)
        const isCurrent = asked.problem === undefined
        const isWell = isCurrent && found === 0 && alerts === 0 && endpoints !== null
        return (
          <>
            <section class={`card verdict ${isWell ? "" : "warn"}`}>
              <div class="mark" aria-hidden="true">
                {isWell ? "✓" : "▲"}
              </div>
              <div>
                <strong>
                  {isCurrent
                    ? verdictOf(found, alerts, endpoints !== null, isOfTenant)
                    : "This is what was last known."}
                </strong>
                <p>
                  {isOfTenant && "In the whole installation: "}
                  <EndpointCounts of={endpoints} />;{" "}
                  <a href={address(["deliveries"], { state: "waiting" })}>
                    {count(deliveries.waiting)}{" "}
                    {deliveries.waiting === 1 ? "delivery waits" : "deliveries wait"}
                  </a>
                  ,{" "}
                  {deliveries.inFlight !== null && (
                    <>
                      <a href={address(["system"])}>
                        {count(deliveries.inFlight)} {deliveries.inFlight === 1 ? "is" : "are"} in
                        flight
                      </a>
                      ,{" "}
                    </>
                  )}
                  <a href={address(["dead-letters"])}>
                    {count(deadLetters.open)}{" "}
                    {deadLetters.open === 1 ? "dead letter is" : "dead letters are"} open
                  </a>
                  .
                </p>
                {audits.value !== undefined && <LastAudit of={last} />}
              </div>
              <a class="btn end hide-s" href={address(["system"])}>
                System
              </a>
            </section>
            <Conditions are={problems} />
            <Command text="petrel status" />
          </>
        )
      }}
    </Answered>
  )
}

const Figured = ({ tenant }: { readonly tenant: string }) => {
  const asked = useAsked(
    `stats ${tenant}`,
    (options) => petrel.log.stats({ tenant, by: "hour" }, options),
    15_000
  )
  return <Answered asked={asked}>{(stats) => <Figures stats={stats} tenant={tenant} />}</Answered>
}

type Filters = Readonly<Record<string, string | undefined>>

/** Alerts that are raised or not, without a value. */
const hasNoValue = /^(circuit-opened|endpoint-(disabled|suspended)|deliveries-missing)$/

const measured = (value: number, unit: string): string => {
  if (unit === "percent") return `${count(value)}\u00a0%`
  return unit === "ms" ? lasting(value) : count(value)
}

/** The value when the alert was raised. */
const valueText = ({ name, threshold, unit, value }: Alert): string => {
  if (value === undefined || hasNoValue.test(name)) return ""
  if (unit === "percent" || unit === "ms")
    return `${measured(value, unit)}, threshold ${measured(threshold, unit)}`
  return `${count(value)} ${value === 1 ? unit.replace(/s$/, "") : unit}`
}

/** The list that an alert's value counts; undefined where it counts nothing that has one. */
const listOf = ({ raisedAt, status, unit, windowMs }: Alert) => {
  const since = new Date(Date.parse(raisedAt) - windowMs).toISOString()
  const lists: Readonly<Record<string, readonly [page: string, filters: Filters]>> = {
    answers: ["attempts", { status }],
    circuits: ["endpoints", { state: "open" }],
    "dead letters": ["dead-letters", { open: "false", since, until: raisedAt }],
    deliveries: ["deliveries", { state: "waiting" }],
    failures: ["attempts", { outcome: "failure" }],
    requests: ["quarantine", {}],
    rows: ["outboxes", {}],
    sources: ["sources", {}]
  }
  return lists[unit]
}

/** What was measured, which leads to what it counts. */
const Value = ({ of }: { readonly of: Alert }) => {
  const [page, filters] = listOf(of) ?? []
  const text = valueText(of)
  return page === undefined || text === "" ? (
    <span class="sub">{text}</span>
  ) : (
    <a href={address([page], { tenant: of.tenant, endpoint: of.endpoint, ...filters })}>{text}</a>
  )
}

/** How alerts are shown, one a row. */
export const alertRows = {
  empty: "No alert is raised.",
  keyOf: ({ id }: Alert) => id,
  head: (
    <>
      <th>About</th>
      <th>What</th>
      <th class="n">Since</th>
    </>
  ),
  row: (alert: Alert) => {
    const { currentValue, endpoint, level, name, raisedAt, tenant, unit, value } = alert
    return (
      <>
        <td>
          {tenant === undefined ? (
            "the installation"
          ) : endpoint === undefined ? (
            tenant
          ) : (
            <EndpointLink tenant={tenant} id={endpoint} />
          )}
        </td>
        <td class="breaks">
          <State is={level} says={name} /> <Value of={alert} />
          {currentValue === undefined || currentValue === value ? null : (
            <>
              {" "}
              <span class="sub">(now {measured(currentValue, unit)})</span>
            </>
          )}
        </td>
        <td class="n">
          <Ago at={raisedAt} />
        </td>
      </>
    )
  }
}

/**
 * True once there is an answer, or a reason for none. With 100,000 endpoints the status takes the
 * console more than a second: what is there at once is asked for before it.
 */
const isKnown = ({ problem, value }: Asked<unknown>): boolean =>
  value !== undefined || problem !== undefined

/** What to do first where there is no endpoint. */
const FirstSteps = ({ tenant }: { readonly tenant: string }) => {
  const whose = tenant === "*" ? "acme" : tenant
  const place = tenant === "*" ? {} : { tenant }
  return (
    <section class="card">
      <h2>{tenant === "*" ? "No tenant has an endpoint yet" : `${tenant} has no endpoint yet`}</h2>
      <ol class="steps">
        <li>
          <a href={address(["endpoints", "new"], place)}>Add an endpoint</a>: the URL that takes
          webhooks{tenant === "*" && ", for a tenant of any name"}.
          <Command
            text={`petrel endpoint add ${whose}/billing --url https://billing.example.com/hooks --types 'invoice.*'`}
          />
        </li>
        <li>
          Publish an event of a type that it wants.
          <FirstEvent />
        </li>
        <li>
          See it go out: it is among the <a href={address(["deliveries"], place)}>deliveries</a>{" "}
          within a second, with each attempt and its answer.
        </li>
      </ol>
    </section>
  )
}

/** Which problems there are, and how deliveries go. */
export const Overview = () => {
  const tenant = shownTenant()
  const alerts = useAsked(
    `alerts ${tenant}`,
    (options) => petrel.deliveries.alerts({ tenant, limit: 10 }, options).page(),
    10_000
  )
  const failed = useAsked(
    `failed ${tenant}`,
    (options) =>
      petrel.log.list({ tenant, state: ["dead-lettered", "waiting"], limit: 10 }, options).page(),
    5_000
  )
  const mayAdd = may("endpoints:write")
  const anyone = useAsked(
    `any endpoint ${tenant}`,
    async (options) =>
      mayAdd ? (await petrel.endpoints.list({ tenant, limit: 1 }, options).page()).endpoints : [{}],
    (found) => (found.length === 0 ? 5_000 : undefined)
  )
  const isEmpty = anyone.value?.length === 0
  return (
    <>
      <h1>Overview</h1>
      {isEmpty && <FirstSteps tenant={tenant} />}
      {may("operator") &&
        (isKnown(alerts) && isKnown(failed) && isKnown(anyone) ? (
          <SystemVerdict alerts={alerts.value?.total} isOfTenant={tenant !== "*"} />
        ) : (
          <div class="card awaited" aria-busy="true">
            Loading…
          </div>
        ))}
      {tenant !== "*" && !isEmpty && <Figured tenant={tenant} />}
      <h2>Alerts</h2>
      <Answered asked={alerts}>
        {({ alerts, total }) => (
          <>
            <Rows {...alertRows} items={alerts} />
            {total > alerts.length && (
              <p>
                <a href={address(["alerts"], { tenant: query.value.tenant })}>
                  All {count(total)} alerts
                </a>
              </p>
            )}
          </>
        )}
      </Answered>
      <h2>Newest that are not delivered</h2>
      <Answered asked={failed}>
        {({ deliveries }) => (
          <Rows
            items={deliveries}
            empty="Nothing waits, and nothing has failed."
            head={
              <>
                <th>Delivery</th>
                <th>State</th>
                <th class="n">When</th>
              </>
            }
            row={({ at, delivery, error, state, status, tenant }) => (
              <>
                <td class="mono">
                  <a href={deliveryPage(tenant, delivery)}>{delivery}</a>
                </td>
                <td class="breaks">
                  <State is={state} /> <span class="sub">{error ?? status ?? ""}</span>
                </td>
                <td class="n">
                  <Ago at={at} />
                </td>
              </>
            )}
          />
        )}
      </Answered>
      {tenant === "*" && !isEmpty && (
        <>
          <h2>Tenants</h2>
          <ChooseTenant page="" why="The figures of a day are those of one tenant." />
        </>
      )}
    </>
  )
}
