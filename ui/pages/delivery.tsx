import { useState } from "preact/hooks"
import type { Delivery as Shown } from "../../src/client/client.ts"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { problemText, useAsked } from "../data.ts"
import {
  Action,
  Ago,
  Answered,
  Command,
  EndpointLink,
  lasting,
  State,
  timeText
} from "../parts.tsx"
import { may, petrel } from "../session.ts"

type Round = Shown["rounds"][number]
type Attempt = Round["attempts"][number]

const beganBy = {
  routed: "Routed",
  redelivered: "Sent again, from a dead letter",
  replayed: "Sent again, by a replay"
}

/** What an attempt was answered, in words. */
const outcome = ({ error, status }: Attempt): string =>
  error === undefined || error === null ? String(status ?? "") : error.class

const AttemptStep = ({ attempt }: { readonly attempt: Attempt }) => {
  const { at, durationMs, error, isProbe, isSuccess, nextAttemptAt, number, response, worker } =
    attempt
  const waitMs = nextAttemptAt === undefined ? 0 : Date.parse(nextAttemptAt) - Date.parse(at)
  return (
    <>
      <time dateTime={at} title={timeText(at)}>
        <Ago at={at} />
      </time>
      <div class="dot">
        <i class={isSuccess ? "good" : "bad"} />
      </div>
      <div class="what">
        <State is={isSuccess ? "delivered" : "failed"} says={outcome(attempt)} />{" "}
        <b>{isProbe === true ? "Probe" : `Attempt ${number}`}</b>{" "}
        <span class="small">
          {durationMs === undefined ? "" : `${lasting(durationMs)}, `}
          {worker}
        </span>
        {isProbe === true && <p>The circuit was half-open: it counts as no attempt.</p>}
        {error != null && <p>{error.message}</p>}
        {attempt.redirects?.map((hop) => (
          <p key={hop.to}>
            redirected with {hop.status} to {hop.to}
          </p>
        ))}
        {response !== undefined && response.body !== "" && <pre>{response.body}</pre>}
        {waitMs > 0 && <p>Next attempt {lasting(waitMs)} later.</p>}
      </div>
    </>
  )
}

const RoundLife = ({ round }: { readonly round: Round }) => {
  const { attempts, begun, end, holds = [], state, waitsIn } = round
  return (
    <section class="card">
      <h2>Round {round.round}</h2>
      <div class="life">
        {begun !== null && (
          <>
            <time title={timeText(begun.at)}>
              <Ago at={begun.at} />
            </time>
            <div class="dot first">
              <i />
            </div>
            <div class="what">
              <b>{beganBy[begun.by]}</b>
              {begun.deadline !== undefined && state === "open" && (
                <p>
                  Given up at {timeText(begun.deadline)} (<Ago at={begun.deadline} />)
                </p>
              )}
            </div>
          </>
        )}
        {attempts.map((attempt) => (
          <AttemptStep key={`${attempt.number} ${attempt.at}`} attempt={attempt} />
        ))}
        {state === "open" ? (
          <>
            <time>now</time>
            <div class="dot last">
              <i class="next" />
            </div>
            <div class="what">
              <b>It waits</b>
              {waitsIn != null && waitsIn.position !== undefined && (
                <p>
                  as number {waitsIn.position} of {waitsIn.of} of its endpoint
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
                  . What frees it: {hold.freedBy}.
                </p>
              ))}
            </div>
          </>
        ) : (
          <>
            <time>{end !== undefined && <Ago at={end.at} />}</time>
            <div class="dot last">
              <i class={state === "delivered" ? "good" : "bad"} />
            </div>
            <div class="what">
              <State is={state} />
              {end?.reason !== undefined && <p>Reason: {end.reason}</p>}
              {end?.late === true && <p>The success was recorded late.</p>}
            </div>
          </>
        )}
      </div>
    </section>
  )
}

const hexOf = (bytes: Uint8Array): string => {
  const lines: Array<string> = []
  for (let at = 0; at < Math.min(bytes.length, 4_096); at += 16) {
    const part = [...bytes.subarray(at, at + 16)]
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ")
    const text = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "."))
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${text.join("")}`)
  }
  return lines.join("\n")
}

/** Returns a body for people: JSON with indents, other text as it is, anything else in hexadecimal. */
export const bodyText = (bytes: Uint8Array): string => {
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return hexOf(bytes)
  }
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const Payload = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const [shown, setShown] = useState<string>()
  const show = async () => {
    try {
      const { body } = await petrel.deliveries.deliveryBody({ tenant, delivery: id })
      setShown(bodyText(body))
    } catch (error) {
      setShown(problemText(error))
    }
  }
  return (
    <>
      <h2>Payload</h2>
      {shown === undefined ? (
        <button type="button" disabled={!may("payloads:read")} onClick={show}>
          {may("payloads:read") ? "Show" : "needs the scope payloads:read"}
        </button>
      ) : (
        <pre class="sunk">{shown}</pre>
      )}
    </>
  )
}

const snippets: ReadonlyArray<readonly [language: string, code: string]> = [
  [
    "Node",
    `import { Webhook } from "standardwebhooks"
new Webhook(secret).verify(rawBody, headers)`
  ],
  [
    "Python",
    `from standardwebhooks import Webhook
Webhook(secret).verify(raw_body, headers)`
  ],
  [
    "Go",
    `wh, _ := standardwebhooks.NewWebhook(secret)
err := wh.Verify(rawBody, r.Header)`
  ]
]

const Verify = () => (
  <details>
    <summary>Verify it in your receiver</summary>
    <p class="small">
      <code>webhook-signature</code> is an HMAC of <code>webhook-id</code>,{" "}
      <code>webhook-timestamp</code> and the body as it came, with dots between, unless the endpoint
      signs in another style. Take the bytes before anything parses them.
    </p>
    {snippets.map(([language, code]) => (
      <div key={language}>
        <b>{language}</b>
        <pre class="sunk">{code}</pre>
      </div>
    ))}
  </details>
)

/** The life of a delivery, why it waits, and what can be done. */
export const Delivery = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const asked = useAsked(
    `delivery ${tenant} ${id}`,
    (options) => petrel.deliveries.delivery({ tenant, delivery: id }, options),
    3_000
  )
  const isOpen = asked.value?.rounds.some(({ state }) => state === "open") === true
  const curl = curlCommand(`/v1/tenants/${tenant}/deliveries/${encodeURIComponent(id)}`)
  return (
    <>
      <div class="title">
        <h1 class="mono">{id}</h1>
        {asked.value !== undefined && (
          <State is={isOpen ? "waiting" : (asked.value.rounds.at(-1)?.state ?? "waiting")} />
        )}
        <div class="acts">
          {isOpen && may("endpoints:write") && (
            <Action
              does={async () => {
                const { state } = await petrel.attempts.retryDelivery({ tenant, delivery: id })
                asked.again()
                return state === "moved" ? "its wait is over" : `it was not waiting: ${state}`
              }}
            >
              Retry now
            </Action>
          )}
          {!isOpen && may("replay:write") && (
            <Action
              main
              confirm="Send it to its endpoint once more?"
              does={async () => {
                await petrel.attempts.resend({ tenant, delivery: id })
                asked.again()
                return "it is sent again"
              }}
            >
              Send again
            </Action>
          )}
        </div>
      </div>
      <Answered asked={asked}>
        {(delivery) => (
          <section class="row">
            <div class="wide">
              {delivery.rounds.toReversed().map((round) => (
                <RoundLife key={round.round} round={round} />
              ))}
            </div>
            <div class="card">
              <h2>Event</h2>
              <dl class="facts">
                <dt>id</dt>
                <dd class="mono">{delivery.event ?? `evt_${delivery.eventSeq}`}</dd>
                <dt>type</dt>
                <dd>{delivery.type ?? "–"}</dd>
                <dt>endpoint</dt>
                <dd>
                  <EndpointLink tenant={delivery.tenant} id={delivery.endpoint} />
                </dd>
                <dt>sequence</dt>
                <dd>{delivery.eventSeq}</dd>
              </dl>
              <Payload tenant={tenant} id={id} />
              <Verify />
            </div>
          </section>
        )}
      </Answered>
      <Command text={`petrel delivery show ${quoted(id)} --tenant ${quoted(tenant)}`} />
      <Command text={curl} request={curl} />
    </>
  )
}
