import type { Alert, Stats } from "../../src/client/client.ts"
import { type Asked, useAsked } from "../data.ts"
import { shownTenant } from "../frame.tsx"
import { Answered, Command, count, deliveryPage, EndpointLink, Rows, State } from "../parts.tsx"
import { address } from "../router.ts"
import { may, petrel } from "../session.ts"
import { Ago, lasting } from "../times.tsx"
import { Answers } from "./answers.tsx"
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
      <polyline fill="none" stroke="currentColor" stroke-width="1.5" points={points} />
    </svg>
  )
}

const percent = (rate: number | null): string =>
  rate === null ? "–" : `${(rate * 100).toFixed(rate === 1 ? 0 : 2)}`

const Figures = ({ stats, tenant }: { readonly stats: Stats; readonly tenant: string }) => {
  const { periods, whole } = stats
  const list = (filters: Record<string, string>) =>
    address(["attempts"], { tenant, since: "1d", ...filters })
  return (
    <>
      <section class="row">
        <a class="card fig" href={list({})}>
          <span>Attempts in a day</span>
          <b>{count(whole.attempts)}</b>
          <Line values={periods.map(({ attempts }) => attempts)} says="Attempts by hour" />
          <small>{count(whole.succeeded)} succeeded</small>
        </a>
        <a class="card fig" href={list({ outcome: "failure" })}>
          <span>Success</span>
          <b>
            {percent(whole.successRate)}
            {whole.successRate !== null && <em>%</em>}
          </b>
          <Line
            values={periods.map(({ successRate }) => successRate ?? 1)}
            says="Rate of success by hour"
          />
          <small>{count(whole.failed)} attempts failed</small>
        </a>
        <a class="card fig" href={list({ outcome: "success" })}>
          <span>Answer of receivers, p99</span>
          <b>{whole.latencyMs === null ? "–" : lasting(whole.latencyMs.p99)}</b>
          <Line values={periods.map(({ latencyMs }) => latencyMs?.p99 ?? 0)} says="p99 by hour" />
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

/** What the installation and the alerts say together; nothing is said to be well before both are known. */
const verdictOf = (problems: number, alerts: number | undefined): string => {
  if (problems > 0)
    return problems === 1 ? "One problem needs somebody." : `${problems} problems need somebody.`
  if (alerts === undefined) return "The installation has no problem; its alerts are not known yet."
  if (alerts > 0) return alerts === 1 ? "One alert is raised." : `${alerts} alerts are raised.`
  return "Nothing needs somebody."
}

const SystemVerdict = ({ alerts }: { readonly alerts: number | undefined }) => {
  const asked = useAsked("status", (options) => petrel.system.status({}, options), 5_000)
  return (
    <Answered asked={asked}>
      {({ deadLetters, deliveries, problems }) => (
        <>
          <section class={`card verdict ${problems.length + (alerts ?? 1) === 0 ? "" : "warn"}`}>
            <div class="mark" aria-hidden="true">
              {problems.length + (alerts ?? 1) === 0 ? "✓" : "▲"}
            </div>
            <div>
              <strong>{verdictOf(problems.length, alerts)}</strong>
              <p>
                <a href={address(["deliveries"], { state: "waiting" })}>
                  {count(deliveries.waiting)} deliveries wait
                </a>
                , {count(deliveries.inFlight)} {deliveries.inFlight === 1 ? "is" : "are"} in flight,{" "}
                <a href={address(["dead-letters"])}>
                  {count(deadLetters.open)} dead letters are open
                </a>
                .
              </p>
            </div>
            <a class="btn end" href={address(["system"])}>
              System
            </a>
          </section>
          {problems.map(({ code, text }) => (
            <div key={code} class="note">
              <b aria-hidden="true">■</b>
              <div>{text}</div>
            </div>
          ))}
          <Command text="petrel status" />
        </>
      )}
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

const valueText = (value: number, unit: string | undefined): string =>
  unit === "percent"
    ? `${count(value)} %`
    : `${count(value)} ${value === 1 ? unit?.replace(/s$/, "") : unit}`

export const AlertRows = ({ alerts }: { readonly alerts: ReadonlyArray<Alert> }) => (
  <Rows
    items={alerts}
    empty="No alert is raised."
    head={
      <>
        <th>About</th>
        <th>What</th>
        <th class="n">Since</th>
      </>
    }
    row={({ endpoint, level, name, raisedAt, tenant, value, unit }) => (
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
          <State is={level} says={name} />{" "}
          {value !== undefined && <span class="sub">{valueText(value, unit)}</span>}
        </td>
        <td class="n">
          <Ago at={raisedAt} />
        </td>
      </>
    )}
  />
)

/**
 * True once there is an answer, or a reason for none. With 100,000 endpoints the status takes the
 * console more than a second: what is there at once is asked for before it.
 */
const isKnown = ({ problem, value }: Asked<unknown>): boolean =>
  value !== undefined || problem !== undefined

/** What needs somebody, and how it goes. */
export const Overview = () => {
  const tenant = shownTenant()
  const alerts = useAsked(
    `alerts ${tenant}`,
    (options) => petrel.deliveries.alerts({ tenant }, options),
    10_000
  )
  const failed = useAsked(
    `failed ${tenant}`,
    (options) =>
      petrel.log.list({ tenant, state: ["dead-lettered", "waiting"], limit: 10 }, options).page(),
    5_000
  )
  return (
    <>
      <h1>Overview</h1>
      {may("operator") &&
        (isKnown(alerts) && isKnown(failed) ? (
          <SystemVerdict alerts={alerts.value?.alerts.length} />
        ) : (
          <div class="card awaited" aria-busy="true">
            Loading…
          </div>
        ))}
      {tenant !== "*" && <Figured tenant={tenant} />}
      <h2>Alerts</h2>
      <Answered asked={alerts}>{({ alerts }) => <AlertRows alerts={alerts} />}</Answered>
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
                <td>
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
      {tenant === "*" && (
        <>
          <h2>Tenants</h2>
          <ChooseTenant page="" why="The figures of a day are those of one tenant." />
        </>
      )}
    </>
  )
}
