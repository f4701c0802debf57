import { useState } from "preact/hooks"
import type { Diagnosis, EndpointDetail } from "../../src/client/client.ts"
import { problemText, useAsked } from "../data.ts"
import { Action, Ago, Answered, Command, count, lasting, State, timeText } from "../parts.tsx"
import { address } from "../router.ts"
import { may, petrel } from "../session.ts"
import { stateOf } from "./endpoints.tsx"

interface Place {
  readonly tenant: string
  readonly id: string
}

const Actions = ({
  again,
  of,
  place
}: {
  readonly again: () => void
  readonly of: EndpointDetail
  readonly place: Place
}) => {
  if (!may("endpoints:write")) return null
  const then = (says: string) => {
    again()
    return says
  }
  return (
    <div class="acts">
      <Action
        does={async () => {
          const { durationMs, error, status, verdict } = await petrel.attempts.test(place)
          return then(`${verdict}: ${error?.message ?? status ?? ""} in ${lasting(durationMs)}`)
        }}
      >
        Send a test event
      </Action>
      {of.disabled !== undefined ? (
        <Action
          does={async () => then(await petrel.endpoints.enable(place).then(() => "it is enabled"))}
        >
          Enable
        </Action>
      ) : of.paused !== undefined || of.suspended !== undefined ? (
        <Action
          does={async () => then(await petrel.endpoints.resume(place).then(() => "it goes on"))}
        >
          Resume
        </Action>
      ) : (
        <Action
          confirm="Pause it? What comes for it waits until it is resumed."
          does={async () => then(await petrel.endpoints.pause(place).then(() => "it is paused"))}
        >
          Pause
        </Action>
      )}
      <Action
        main
        does={async () =>
          then(await petrel.attempts.retryNow(place).then(() => "what waits is tried now"))
        }
      >
        Retry now
      </Action>
    </div>
  )
}

const Secret = ({ of, place }: { readonly of: EndpointDetail; readonly place: Place }) => {
  const [made, setMade] = useState<string>()
  return (
    <div class="card">
      <h2>Signature</h2>
      <p class="small">
        {of.sign}, {of.secrets.length === 1 ? "one secret" : `${of.secrets.length} secrets`}
        {of.secrets[0] !== undefined && (
          <>
            , made <Ago at={of.secrets[0].createdAt} />
          </>
        )}
      </p>
      {may("endpoints:write") && (
        <Action
          confirm="Make a new secret? Both count for a while, so that the receiver can change over."
          does={async () => {
            const { secrets } = await petrel.endpoints.rotate(place)
            setMade(secrets[0]?.value)
            return "a new secret is made, and the former one counts for a while"
          }}
        >
          Rotate the secret
        </Action>
      )}
      {made !== undefined && <pre class="sunk">{made}</pre>}
    </div>
  )
}

const Diagnosed = ({ place }: { readonly place: Place }) => {
  const [found, setFound] = useState<Diagnosis | string>()
  return (
    <div class="card">
      <h2>Diagnosis</h2>
      <button
        type="button"
        onClick={async () => {
          setFound("Looking…")
          try {
            setFound(await petrel.attempts.diagnose(place))
          } catch (error) {
            setFound(problemText(error))
          }
        }}
      >
        Find out what is wrong
      </button>
      {typeof found === "string" && <p role="status">{found}</p>}
      {typeof found === "object" &&
        found.checks.map(({ advice, name, result, says }) => (
          <p key={name}>
            <State is={result} says={name} /> {says}
            {advice !== undefined && <b> {advice}</b>}
          </p>
        ))}
    </div>
  )
}

const hour = 3_600_000
const day = 24 * hour

const Attempts = ({ place }: { readonly place: Place }) => {
  const asked = useAsked(
    `stats ${place.tenant}/${place.id}`,
    (options) => petrel.log.endpointStats({ ...place, by: "hour" }, options),
    15_000
  )
  return (
    <Answered asked={asked}>
      {({ periods, until, whole }) => {
        const most = Math.max(1, ...periods.map(({ attempts }) => attempts))
        const width = 600 / 24
        const from = Date.parse(until) - day
        return (
          <div class="card wide">
            <h2>Attempts of a day, by hour</h2>
            <svg
              class="chart"
              viewBox="0 0 600 120"
              preserveAspectRatio="none"
              role="img"
              aria-label={`${whole.succeeded} attempts succeeded and ${whole.failed} failed`}
            >
              {periods.map(({ begins, failed, succeeded }) => {
                const at = Math.max(0, (Date.parse(begins) - from) / hour)
                const [good, bad] = [(succeeded / most) * 116, (failed / most) * 116]
                return (
                  <g key={begins}>
                    <title>{`${timeText(begins)}: ${succeeded} succeeded, ${failed} failed`}</title>
                    <rect
                      class="good"
                      x={at * width}
                      y={118 - good}
                      width={width * 0.8}
                      height={good}
                    />
                    <rect
                      class="bad"
                      x={at * width}
                      y={118 - good - bad}
                      width={width * 0.8}
                      height={bad}
                    />
                  </g>
                )
              })}
            </svg>
            <p class="small">
              {count(whole.succeeded)} succeeded, {count(whole.failed)} failed
              {whole.latencyMs !== null &&
                `; p50 ${lasting(whole.latencyMs.p50)}, p99 ${lasting(whole.latencyMs.p99)}`}
            </p>
          </div>
        )
      }}
    </Answered>
  )
}

const settingText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2)

const Detail = ({ of, place }: { readonly of: EndpointDetail; readonly place: Place }) => {
  const { health, waiting } = of
  const why = of.disabled ?? of.suspended ?? of.paused
  const list = (filters: Record<string, string>) =>
    address(["deliveries"], { tenant: of.tenant, endpoint: of.id, ...filters })
  return (
    <>
      {why !== undefined && (
        <div class="note">
          <b aria-hidden="true">■</b>
          <div>
            {why.reason ?? "no reason is given"}, by {why.by}, <Ago at={why.at} />
          </div>
        </div>
      )}
      {of.circuit.why !== undefined && (
        <div class="note">
          <b aria-hidden="true">■</b>
          <div>
            {of.circuit.why}. Nothing is lost: what comes for it waits.
            {of.circuit.nextProbeAt !== undefined && (
              <>
                {" "}
                A probe goes out <Ago at={of.circuit.nextProbeAt} />.
              </>
            )}
            {health.giveUpAt !== undefined && (
              <>
                {" "}
                It is given up <Ago at={health.giveUpAt} />.
              </>
            )}
          </div>
        </div>
      )}
      <section class="row">
        <Attempts place={place} />
        <div class="card">
          <h2>Now</h2>
          <dl class="facts">
            <dt>in flight</dt>
            <dd>
              {count(of.inFlight)} of {of.maxInFlight}
            </dd>
            <dt>waiting</dt>
            <dd>
              <a href={list({ state: "waiting" })}>
                {count(waiting.queue + waiting.backlog + (waiting.schedules ?? 0))}
              </a>
            </dd>
            <dt>dead letters</dt>
            <dd>
              <a href={address(["dead-letters"], { tenant: of.tenant, endpoint: of.id })}>show</a>
            </dd>
            <dt>failures in a row</dt>
            <dd>{health.failuresInRow}</dd>
            <dt>last failure</dt>
            <dd>{health.lastError ?? health.lastStatus ?? "–"}</dd>
          </dl>
          <p>
            <a href={list({})}>All its deliveries</a>
          </p>
        </div>
      </section>
      <section class="row">
        <div class="card wide">
          <h2>Settings</h2>
          <dl class="facts">
            {(["types", "retry", "circuit", "timeout", "rate", "headers", "contact"] as const).map(
              (name) =>
                of[name] !== undefined && (
                  <>
                    <dt>{name}</dt>
                    <dd>
                      <pre class="bare">{settingText(of[name])}</pre>
                    </dd>
                  </>
                )
            )}
          </dl>
        </div>
        <div>
          <Secret of={of} place={place} />
          <Diagnosed place={place} />
        </div>
      </section>
    </>
  )
}

/** One endpoint: how it does, and what can be done. */
export const Endpoint = (place: Place) => {
  const { id, tenant } = place
  const asked = useAsked(
    `endpoint ${tenant}/${id}`,
    // Without If-None-Match it is never left out of the answer.
    async (options) => (await petrel.endpoints.get({ tenant, id }, options)) as EndpointDetail,
    4_000
  )
  return (
    <>
      <div class="title">
        <h1>
          {tenant}/{id}
        </h1>
        {asked.value !== undefined && (
          <>
            <State is={stateOf(asked.value)} />
            <span class="small mono">{asked.value.url}</span>
            <Actions again={asked.again} of={asked.value} place={{ tenant, id }} />
          </>
        )}
      </div>
      <Answered asked={asked}>{(of) => <Detail of={of} place={{ tenant, id }} />}</Answered>
      <Command text={`petrel endpoint show ${tenant}/${id}`} />
    </>
  )
}
