import { Fragment } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import type { Diagnosis, EndpointDetail } from "../../src/client/client.ts"
import { useAsked } from "../data.ts"
import { type Field, formOf, type Typed } from "../fields.ts"
import { endpointFields } from "../generated/forms.ts"
import { Rows } from "../list.tsx"
import { Action, Acts, Answered, count, Once, State } from "../parts.tsx"
import { address, go, query } from "../router.ts"
import { may, petrel, session } from "../session.ts"
import { Ago, lasting, timeText } from "../times.tsx"
import { Answers } from "./answers.tsx"
import { FailuresInRow, stateOf } from "./endpoints.tsx"
import { alertRows } from "./overview.tsx"
import { Schedule } from "./schedule.tsx"

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
  const name = `${place.tenant}/${place.id}`
  const usual = `petrel endpoint show ${name}`
  const is =
    of.disabled !== undefined
      ? "disabled"
      : of.paused !== undefined || of.suspended !== undefined
        ? "paused"
        : "on"
  // What was done, said while the endpoint is as that made it.
  const [done, setDone] = useState<{ readonly made: string; readonly says: string }>()
  const changing = useRef<HTMLSpanElement>(null)
  // The button that was pressed is gone, and another one is in its place.
  useEffect(() => {
    if (done?.made === is && document.activeElement === document.body)
      changing.current?.querySelector("button")?.focus()
  }, [done, is])
  if (!may("endpoints:write")) return <Acts usual={usual}>{null}</Acts>
  const command = (verb: string, after = "") => `petrel endpoint ${verb} ${name}${after}`
  // Whoever acts on what they see acts on that.
  const expected = { ifMatch: of.revision }
  const then = (says: string) => {
    again()
    return says
  }
  const change = async (made: string, says: string, changed: Promise<unknown>) => {
    await changed
    setDone({ made, says })
    return then("")
  }
  const because = (reason: string) => (reason === "" ? {} : { reason })
  return (
    <Acts usual={usual}>
      <Action
        command={command("test")}
        does={async () => {
          const { durationMs, error, status, verdict } = await petrel.attempts.test(place)
          return then(
            `${verdict === "delivered" ? verdict : "failed"}: ${error?.message ?? status ?? ""} in ${lasting(durationMs)}`
          )
        }}
      >
        Send a test event
      </Action>
      {/* Each is a button of its own: what was asked or said of one is nothing of the next one. */}
      <span class="action" ref={changing}>
        {is === "disabled" ? (
          <Action
            key="enable"
            command={command("enable")}
            does={() => change("on", "it is enabled", petrel.endpoints.enable(place, expected))}
          >
            Enable
          </Action>
        ) : is === "paused" ? (
          <Action
            key="resume"
            command={command("resume")}
            does={() => change("on", "it goes on", petrel.endpoints.resume(place, expected))}
          >
            Resume
          </Action>
        ) : (
          <Action
            key="pause"
            command={command("pause")}
            confirm="Pause it? What comes for it waits until it is resumed, or for as long as each delivery may."
            asks="Why, for the history (optional)"
            does={(reason) =>
              change(
                "paused",
                "it is paused",
                petrel.endpoints.pause({ ...place, ...because(reason) }, expected)
              )
            }
          >
            Pause
          </Action>
        )}
        {done?.made === is && <small role="status">{done.says}</small>}
      </span>
      <Action
        main
        command={command("retry-now")}
        does={async () =>
          then(
            await petrel.attempts
              .retryNow(place)
              .then(({ inBacklog, inFlight, moved }) =>
                moved + inBacklog + inFlight > 0
                  ? "what waits is tried now"
                  : "nothing is to be tried"
              )
          )
        }
      >
        Retry now
      </Action>
    </Acts>
  )
}

const waitsText = ({ waiting }: EndpointDetail): string =>
  count(waiting.queue + waiting.backlog + (waiting.schedules ?? 0))

/** What becomes of what waits for it if it is out of service; nothing where nothing is known to wait. */
const endText = (of: EndpointDetail): string =>
  waitsText(of) === "0" ? "" : ` What waits for it (${waitsText(of)}) becomes dead letters.`

/** What waits for it, which leads to these. */
const Waits = ({ of }: { readonly of: EndpointDetail }) => (
  <a href={address(["deliveries"], { tenant: of.tenant, endpoint: of.id, state: "waiting" })}>
    {waitsText(of)}
  </a>
)

/** What takes it out of service. */
const Ending = ({
  again,
  of,
  place
}: {
  readonly again: () => void
  readonly of: EndpointDetail
  readonly place: Place
}) => {
  const name = `${place.tenant}/${place.id}`
  const expected = { ifMatch: of.revision }
  if (!may("endpoints:write")) return null
  return (
    <div class="card">
      <h2>Out of service</h2>
      <p class="small">
        A disabled endpoint gets no events, and what waits for it (<Waits of={of} />) becomes dead
        letters, which can be sent again. A removed one is gone with its settings and its secret.
      </p>
      <div class="acts">
        {of.disabled === undefined && (
          <Action
            command={`petrel endpoint disable ${name}`}
            confirm={`Disable ${name}? It gets no events.${endText(of)}`}
            asks="Why, for the history (optional)"
            does={async (reason) => {
              await petrel.endpoints.disable(
                { ...place, ...(reason === "" ? {} : { reason }) },
                expected
              )
              again()
              return "it is disabled"
            }}
          >
            Disable
          </Action>
        )}
        {session.value?.endpoint === undefined && (
          <Action
            command={`petrel endpoint remove ${name}`}
            confirm={`Remove ${name} with its settings and its secret?${endText(of)}`}
            does={async () => {
              await petrel.endpoints.remove(place, expected)
              go(address(["endpoints"], { tenant: query.value.tenant }))
              return "it is removed"
            }}
          >
            Remove
          </Action>
        )}
      </div>
    </div>
  )
}

const Secret = ({
  again,
  of,
  place
}: {
  readonly again: () => void
  readonly of: EndpointDetail
  readonly place: Place
}) => {
  const [made, setMade] = useState<string>()
  const [shown, setShown] = useState<ReadonlyArray<string>>()
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
        {of.secrets.map(({ createdAt, until }) =>
          until === undefined ? null : (
            <span key={createdAt}>
              ; an older one signs, too, and ends <Ago at={until} />
            </span>
          )
        )}
      </p>
      {of.publicKey !== undefined && <pre class="sunk">{of.publicKey}</pre>}
      {may("endpoints:write") && of.sign !== "none" && (
        <Action
          command={`petrel endpoint rotate ${place.tenant}/${place.id}`}
          confirm="Make a new secret? Both sign for a day, so that the receiver can change over."
          does={async () => {
            const { secret } = await petrel.endpoints.rotate(place, { ifMatch: of.revision })
            setMade(secret)
            again()
            return "a new secret is made, and the former one signs, too, for a day"
          }}
        >
          Rotate the secret
        </Action>
      )}{" "}
      {may("secrets:read") && of.secrets.length > 0 && (
        <Action
          confirm="Show the secret? The history records who was shown it."
          does={async () => {
            const { secrets } = await petrel.endpoints.secret(place)
            setShown(secrets.map(({ value }) => value))
            return ""
          }}
        >
          Show it
        </Action>
      )}
      {made !== undefined && <Once secret={made} />}
      {shown?.map((value) => (
        <pre key={value} class="sunk">
          {value}
        </pre>
      ))}
    </div>
  )
}

const Diagnosed = ({ place }: { readonly place: Place }) => {
  const [found, setFound] = useState<Diagnosis>()
  return (
    <div class="card">
      <h2>Diagnosis</h2>
      <Action
        does={async () => {
          setFound(undefined)
          setFound(await petrel.attempts.diagnose(place))
          return ""
        }}
      >
        Find out what is wrong
      </Action>
      {found?.checks.map(({ advice, name, result, says }) => (
        <p key={name}>
          <State is={result} says={name} /> {says}.{advice !== undefined && <b> {advice}</b>}
        </p>
      ))}
    </div>
  )
}

const hour = 3_600_000
const hoursOfADay = 24

const Attempts = ({ place }: { readonly place: Place }) => {
  const asked = useAsked(
    `stats ${place.tenant}/${place.id}`,
    (options) => petrel.log.endpointStats({ ...place, by: "hour" }, options),
    15_000
  )
  return (
    <Answered asked={asked}>
      {({ periods, whole }) => {
        const most = Math.max(1, ...periods.map(({ attempts }) => attempts))
        const attempts = (filters: Record<string, string>) =>
          address(["attempts"], {
            ...{ tenant: place.tenant, endpoint: place.id, since: "1d" },
            ...filters
          })
        return (
          <div class="card wide">
            <h2>Attempts of a day, by hour</h2>
            <div class="hours">
              {Array.from({ length: hoursOfADay - periods.length }, (_, at) => (
                <span key={at} title="Before the log begins" />
              ))}
              {periods.map(({ begins, failed, succeeded }) => {
                const [good, bad] = [(succeeded / most) * 116, (failed / most) * 116]
                const says = `${timeText(begins)}: ${succeeded} succeeded, ${failed} failed`
                return (
                  <a
                    key={begins}
                    href={attempts({
                      since: begins,
                      until: new Date(Date.parse(begins) + hour).toISOString()
                    })}
                    title={says}
                    // The figures below are for keys: 24 stops on the way to them would be too many.
                    tabIndex={-1}
                  >
                    <span class="unseen">{says}</span>
                    <svg viewBox="0 0 10 120" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="none" y={119} width={10} height={1} />
                      <rect class="good" y={120 - good} width={10} height={good} />
                      <rect class="bad" y={120 - good - bad} width={10} height={bad} />
                    </svg>
                  </a>
                )
              })}
            </div>
            <p class="small">
              <a href={attempts({ outcome: "success" })}>{count(whole.succeeded)} succeeded</a>,{" "}
              <a href={attempts({ outcome: "failure" })}>{count(whole.failed)} failed</a>
              {whole.latencyMs !== null &&
                `; p50 ${lasting(whole.latencyMs.p50)}, p99 ${lasting(whole.latencyMs.p99)}`}
            </p>
            <Answers of={whole.answers} place={place} />
          </div>
        )
      }}
    </Answered>
  )
}

/** The parts of a setting that are not at their defaults, one a line. */
const partsText = (typed: Typed, name: string): string =>
  Object.entries(typed)
    .filter(([path, text]) => path.startsWith(`${name}.`) && text !== "")
    .map(([path, text]) => `${path.slice(name.length + 1)}: ${text}`)
    .join("\n")

/** What changes another setting than its own. */
const requests = new Set(["secret", "operational"])

/** Settings as they are. What is at its default says so. */
const SettingsShown = ({ of, place }: { readonly of: EndpointDetail; readonly place: Place }) => {
  const values = of as unknown as Record<string, unknown>
  const typed = formOf(endpointFields, values)
  const isSet = ({ kind, name }: Field) =>
    kind.is === "parts"
      ? Object.entries(typed).some(([path, text]) => path.startsWith(`${name}.`) && text !== "")
      : (typed[name] ?? "") !== ""
  const rest = endpointFields.filter((field) => !isSet(field) && !requests.has(field.name))
  return (
    <div class="card">
      <div class="title">
        <h2>Settings</h2>
        <div class="acts">
          <a class="btn" href={address(["endpoints", place.tenant, place.id, "history"])}>
            History
          </a>
          {may("endpoints:write") && (
            <a class="btn" href={address(["endpoints", place.tenant, place.id, "settings"])}>
              Change
            </a>
          )}
        </div>
      </div>
      <dl class="facts">
        {endpointFields.filter(isSet).map(({ kind, name }) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>
              <pre class="bare">{kind.is === "parts" ? partsText(typed, name) : typed[name]}</pre>
            </dd>
          </Fragment>
        ))}
      </dl>
      <p class="small">At their defaults: {rest.map(({ name }) => name).join(", ")}.</p>
    </div>
  )
}

/** When its attempts come if all fail, for each of its policies. */
const Policies = ({ place }: { readonly place: Place }) => {
  const asked = useAsked(`policies ${place.tenant}/${place.id}`, (options) =>
    petrel.endpoints.retryPolicies(place, options)
  )
  return (
    <Answered asked={asked}>
      {({ policies }) => (
        <div class="card">
          {policies.map((policy) => (
            <Fragment key={policy.types ?? ""}>
              <h2>
                Retry schedule{policy.types !== undefined && ` of ${policy.types}`}: {policy.name}
              </h2>
              <Schedule of={policy} />
            </Fragment>
          ))}
        </div>
      )}
    </Answered>
  )
}

/** What sends again, or tries now, more than one delivery. */
const Again = ({ place }: { readonly place: Place }) => {
  const of = { tenant: place.tenant, endpoint: place.id }
  const links = [
    ["dead:read", ["dead-letters"], "Its dead letters", "see them, and send them again"],
    ["dead:write", ["start", "recovery"], "Recover", "send again all that failed since a time"],
    ["replay:write", ["start", "replay"], "Replay", "send it events of the past once more"],
    ["endpoints:write", ["start", "retry"], "Try some now", "of what waits, by a filter"]
  ] as const
  const seen = links.filter(
    // A bulk retry is about a tenant: who has one endpoint has its button above.
    ([scope, [, kind]]) => may(scope) && (kind !== "retry" || session.value?.endpoint === undefined)
  )
  return seen.length === 0 ? null : (
    <div class="card">
      <h2>Send again</h2>
      <dl class="facts">
        {seen.map(([, path, text, says]) => (
          <Fragment key={text}>
            <dt>
              <a href={address(path, of)}>{text}</a>
            </dt>
            <dd>{says}</dd>
          </Fragment>
        ))}
      </dl>
    </div>
  )
}

const Detail = ({
  again,
  of,
  place
}: {
  readonly again: () => void
  readonly of: EndpointDetail
  readonly place: Place
}) => {
  const { health } = of
  const why = of.disabled ?? of.suspended ?? of.paused
  return (
    <>
      {why !== undefined && (
        <div class="note">
          <b aria-hidden="true">■</b>
          <div>
            {stateOf(of)} <Ago at={why.at} /> by {why.by}
            {why.reason !== undefined && `: ${why.reason}`}
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
                If it keeps failing, it is{" "}
                {of.circuit.onGiveUp === "suspend" ? "suspended" : "disabled"}{" "}
                <Ago at={health.giveUpAt} />.
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
              <Waits of={of} />
            </dd>
            <dt>failures in a row</dt>
            <dd>
              <FailuresInRow of={of} />
            </dd>
            <dt>last failure</dt>
            <dd>
              {health.lastError === undefined && health.lastStatus === undefined ? (
                "–"
              ) : (
                <a
                  href={address(["attempts"], {
                    ...{ tenant: of.tenant, endpoint: of.id },
                    ...(health.lastError === undefined
                      ? { status: String(health.lastStatus) }
                      : { error: health.lastError })
                  })}
                >
                  {health.lastError ?? health.lastStatus}
                </a>
              )}
            </dd>
          </dl>
          <p>
            <a href={address(["deliveries"], { tenant: of.tenant, endpoint: of.id })}>
              All its deliveries
            </a>
          </p>
        </div>
      </section>
      <section class="row">
        <div class="wide">
          <Policies place={place} />
          <SettingsShown of={of} place={place} />
        </div>
        <div>
          <Again place={place} />
          <Secret again={again} of={of} place={place} />
          <Diagnosed place={place} />
          <Ending again={again} of={of} place={place} />
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
      <Answered asked={asked}>
        {(of) => (
          <>
            {of.raised.length > 0 && (
              <Rows
                {...alertRows}
                items={of.raised.map((one) => ({ ...one, tenant, endpoint: id }))}
              />
            )}
            <Detail again={asked.again} of={of} place={{ tenant, id }} />
          </>
        )}
      </Answered>
    </>
  )
}
