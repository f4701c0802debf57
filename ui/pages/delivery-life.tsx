import type { ComponentChildren } from "preact"
import type { Delivery, OutlinedPolicy } from "../../src/client/client.ts"
import { count, Marked, State } from "../parts.tsx"
import { address } from "../router.ts"
import { spanMs } from "../span.ts"
import { Ago, lasting, timeText } from "../times.tsx"
import { rangeText } from "./schedule.tsx"

type Round = Delivery["rounds"][number]
type Attempt = Round["attempts"][number]
type Wait = OutlinedPolicy["waits"][number]

/** Returns what a round is called. Its name is 0, or begins with d (dead letter) or r (replay). */
const roundText = (round: string): string =>
  round === "0"
    ? "First round"
    : `${round.startsWith("d") ? "Redelivery of dead letter" : "Replay"} ${round.slice(1)}`

/** What an attempt was answered, in words. */
const outcome = ({ error, status }: Attempt): string =>
  error === undefined || error === null ? String(status ?? "") : error.class

/** Where the time of an attempt went. */
const Latency = ({ of }: { readonly of: Attempt }) => {
  const { connectMs = 0, durationMs, firstByteMs } = of
  if (durationMs === undefined || firstByteMs === undefined) return null
  const whole = Math.max(durationMs, firstByteMs, 1)
  const answering = Math.max(0, firstByteMs - connectMs)
  const rest = Math.max(0, durationMs - firstByteMs)
  const says = [
    ...(connectMs > 0 ? [`connected in ${lasting(connectMs)}`] : ["on an open connection"]),
    `first byte after ${lasting(firstByteMs)}`,
    `all after ${lasting(durationMs)}`
  ].join(", ")
  const parts = [
    ["connect", connectMs],
    ["wait", answering],
    ["read", rest]
  ] as const
  return (
    <div class="lat">
      <svg viewBox={`0 0 ${whole} 8`} preserveAspectRatio="none" role="img" aria-label={says}>
        {parts.map(([name, ms], at) => (
          <rect
            key={name}
            class={name}
            x={parts.slice(0, at).reduce((sum, [, before]) => sum + before, 0)}
            width={ms}
            height={8}
          />
        ))}
      </svg>
      <small>{says}</small>
    </div>
  )
}

/** A wait between the shortest and longest that the policy may draw. */
const WaitBar = ({ drawn, wait }: { readonly drawn?: number; readonly wait: Wait }) => {
  const [from, to] = [spanMs(wait.least), spanMs(wait.most)]
  const most = Math.max(to, drawn ?? 0, 1)
  const at = (ms: number) => (ms / most) * 100
  return (
    <svg class="waits" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
      <rect x={at(from)} width={Math.max(1, at(to) - at(from))} height={12} />
      {drawn !== undefined && (
        <rect class="drawn" x={Math.min(99, at(drawn))} width={1} height={12} />
      )}
    </svg>
  )
}

const Waited = ({
  drawn,
  policy,
  wait
}: {
  readonly drawn: number
  readonly policy: string
  readonly wait: Wait | undefined
}) => {
  if (wait === undefined) return <p>Next attempt {lasting(drawn)} later.</p>
  // Clocks of worker and broker, and whole milliseconds.
  const isWithin = drawn >= spanMs(wait.least) - 1_000 && drawn <= spanMs(wait.most) + 1_000
  return (
    <>
      <p>
        Next attempt {lasting(drawn)} later
        {isWithin
          ? `, drawn from ${rangeText(wait.least, wait.most)} (${policy})`
          : `: the policy (${policy}) has ${rangeText(wait.least, wait.most)}, and the receiver's Retry-After or the settings of that time had another`}
        .
      </p>
      <WaitBar wait={wait} drawn={drawn} />
    </>
  )
}

const Step = ({
  at,
  children,
  dot = "",
  look
}: {
  readonly at: ComponentChildren
  readonly children: ComponentChildren
  readonly dot?: string
  readonly look: string
}) => (
  <>
    {at}
    <div class={`dot ${dot}`}>
      <i class={look} />
    </div>
    <div class="what">{children}</div>
  </>
)

/** How many of these were probes, which use up no attempt of the policy. */
const probesIn = (attempts: ReadonlyArray<Attempt>): number =>
  attempts.filter(({ isProbe }) => isProbe).length

const AttemptStep = ({
  attempt,
  before,
  policy
}: {
  readonly attempt: Attempt
  /** Those before it. */
  readonly before: ReadonlyArray<Attempt>
  readonly policy: OutlinedPolicy | undefined
}) => {
  const { at, error, isProbe, isSuccess, nextAttemptAt, number, response, worker } = attempt
  const waitMs = nextAttemptAt === undefined ? 0 : Date.parse(nextAttemptAt) - Date.parse(at)
  return (
    <Step at={<Ago at={at} />} look={isSuccess ? "good" : "bad"} dot={waitMs > 0 ? "wait" : ""}>
      <State is={isSuccess ? "delivered" : "failed"} says={outcome(attempt)} />{" "}
      <b>{isProbe === true ? "Probe" : `Attempt ${number}`}</b>{" "}
      <span class="small">
        {attempt.durationMs === undefined ? "" : `${lasting(attempt.durationMs)}, `}
        {worker}
      </span>
      {isProbe === true && <p>The circuit was half-open: it counts as no attempt.</p>}
      {error != null && <p>{error.message}</p>}
      <Latency of={attempt} />
      {attempt.redirects?.map((hop) => (
        <p key={hop.to}>
          redirected with {hop.status} to {hop.to}
        </p>
      ))}
      {response !== undefined && response.body !== "" && <pre>{response.body}</pre>}
      {waitMs > 0 && (
        <Waited
          drawn={waitMs}
          policy={policy?.name ?? ""}
          // When a probe is followed by another one is not said by the policy.
          wait={
            isProbe
              ? undefined
              : policy?.waits.find((wait) => wait.attempt === number + 1 - probesIn(before))
          }
        />
      )}
    </Step>
  )
}

/** Waits that are shown of those to come. */
const mostShown = 6

/** What ends at a time that is known. What ends with something else may last. */
const timed = new Set<string>(["time", "retry-after", "answer", "outcome"])

/** What comes if it keeps failing. */
const Coming = ({
  deadline,
  due,
  policy,
  round
}: {
  readonly deadline: string | undefined
  /** When the next attempt is due, if that is drawn. */
  readonly due: string | undefined
  readonly policy: OutlinedPolicy
  readonly round: Round
}) => {
  const probes = probesIn(round.attempts)
  const made = round.lastAttempt - probes
  const coming = policy.waits.filter(({ attempt }) => attempt > made + 1)
  const { holds = [] } = round
  const known = [due, ...holds.map(({ until }) => until)].filter((at) => at !== undefined)
  const from = Math.max(Date.now(), ...known.map((at) => Date.parse(at)))
  const mayLast = holds.some(({ by }) => !timed.has(by))
  let [earliest, latest] = [from, from]
  const rows = coming.slice(0, mostShown).map((wait) => {
    earliest += spanMs(wait.least)
    latest += spanMs(wait.most)
    return { wait, earliest, latest }
  })
  const end = deadline === undefined ? Number.POSITIVE_INFINITY : Date.parse(deadline)
  if (made + 1 > policy.maxAttempts) return null
  return (
    <details open={rows.length > 0}>
      <summary>
        If it keeps failing: {policy.maxAttempts - made} more of {policy.maxAttempts} attempts (
        {policy.name}
        {probes > 0 && "; probes do not count"})
      </summary>
      {rows.length > 0 && (
        <table class="coming">
          <thead>
            <tr>
              <th>Attempt</th>
              <th>Waits</th>
              <th class="n">At the earliest</th>
              <th class="n">At the latest</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.wait.attempt}>
                <td>{row.wait.attempt + probes}</td>
                <td>{rangeText(row.wait.least, row.wait.most)}</td>
                <td class="n">
                  <Ago at={new Date(row.earliest).toISOString()} />
                </td>
                <td class="n">
                  {row.latest > end ? (
                    "may not come"
                  ) : mayLast ? (
                    "not known"
                  ) : (
                    <Ago at={new Date(row.latest).toISOString()} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {coming.length > mostShown && <small>and {coming.length - mostShown} more</small>}
    </details>
  )
}

const Waiting = ({
  of: { endpoint, tenant },
  policy,
  round
}: {
  readonly of: Delivery
  readonly policy: OutlinedPolicy | undefined
  readonly round: Round
}) => {
  const { begun, holds = [], waits, waitsIn } = round
  const due = waits?.until
  const isDue = due !== undefined && Date.parse(due) > Date.now()
  return (
    <Step at={isDue ? <Ago at={due} /> : <time>now</time>} dot="last" look="next">
      <b>{isDue ? `Next: attempt ${round.lastAttempt + 1}` : "It waits"}</b>
      {waitsIn != null && waitsIn.position !== undefined && (
        <p>
          as number {waitsIn.position} of{" "}
          <a href={address(["deliveries"], { tenant, endpoint, state: "waiting" })}>
            {count(waitsIn.of)} in the backlog
          </a>{" "}
          of its endpoint
        </p>
      )}
      {holds.map((hold) => (
        <p key={hold.by}>
          {hold.says}
          {hold.until !== undefined && (
            <>
              {" "}
              (<Ago at={hold.until} />)
            </>
          )}
          . What frees it: <Marked text={hold.freedBy} />.
        </p>
      ))}
      {policy !== undefined && (
        <Coming deadline={begun?.deadline} due={due} policy={policy} round={round} />
      )}
    </Step>
  )
}

/** One round of a delivery, from its beginning to its end or to what it waits for. */
export const RoundLife = ({
  of,
  policy,
  round
}: {
  readonly of: Delivery
  readonly policy: OutlinedPolicy | undefined
  readonly round: Round
}) => {
  const { attempts, begun, end, state } = round
  return (
    <section class="card">
      <h2>{roundText(round.round)}</h2>
      <div class="life">
        {begun !== null && (
          <Step at={<Ago at={begun.at} />} dot="first" look="">
            <b>{begun.by === "routed" ? "Routed" : "Sent again"}</b>
            {begun.deadline !== undefined && state === "open" && (
              <p>
                Given up at {timeText(begun.deadline)} (<Ago at={begun.deadline} />)
              </p>
            )}
          </Step>
        )}
        {attempts.map((attempt, at) => (
          <AttemptStep
            key={`${attempt.number} ${attempt.at}`}
            attempt={attempt}
            before={attempts.slice(0, at)}
            policy={policy}
          />
        ))}
        {state === "open" ? (
          <Waiting of={of} policy={policy} round={round} />
        ) : (
          <Step
            at={end === undefined ? <time>–</time> : <Ago at={end.at} />}
            dot="last"
            look={state === "delivered" ? "good" : "bad"}
          >
            <State is={state} />
            {end?.reason !== undefined && <p>Reason: {end.reason}</p>}
            {end?.late === true && <p>The success was recorded late.</p>}
          </Step>
        )}
      </div>
    </section>
  )
}
