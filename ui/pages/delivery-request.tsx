import { useState } from "preact/hooks"
import type { Delivery, EndpointDetail } from "../../src/client/client.ts"
import { problemText } from "../data.ts"
import { Copy } from "../parts.tsx"
import { curlOfAttempt, type SentHeader, sentHeaders, verifySnippets } from "../sent-headers.ts"
import { may, petrel } from "../session.ts"

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

/** A body as it was asked for. */
interface Shown {
  readonly body: Uint8Array
  readonly contentType: string
}

/** A longer body does not go into a command. */
const mostInCommand = 8_192

const textOf = ({ body }: Shown): string | undefined => {
  if (body.length > mostInCommand) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body)
  } catch {
    return undefined
  }
}

const Payload = ({
  id,
  setShown,
  shown,
  tenant
}: {
  readonly id: string
  readonly setShown: (shown: Shown) => void
  readonly shown: Shown | undefined
  readonly tenant: string
}) => {
  const [isHex, setHex] = useState(false)
  const [problem, setProblem] = useState<string>()
  const show = async () => {
    try {
      setShown(await petrel.deliveries.deliveryBody({ tenant, delivery: id }))
      setProblem(undefined)
    } catch (error) {
      setProblem(problemText(error))
    }
  }
  const text = shown === undefined ? "" : isHex ? hexOf(shown.body) : bodyText(shown.body)
  return (
    <>
      <h2>Payload</h2>
      {problem !== undefined && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      {shown === undefined ? (
        <button type="button" disabled={!may("payloads:read")} onClick={show}>
          {may("payloads:read") ? "Show" : "needs the scope payloads:read"}
        </button>
      ) : (
        <>
          <div class="acts">
            <small>
              {shown.contentType}, {shown.body.length.toLocaleString("en")} bytes
            </small>
            <button type="button" class="plain" onClick={() => setHex(!isHex)}>
              {isHex ? "as text" : "as hexadecimal"}
            </button>
            <Copy text={text} />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
          <pre class="sunk" tabIndex={0}>
            {text}
          </pre>
        </>
      )}
    </>
  )
}

const Headers = ({ headers }: { readonly headers: ReadonlyArray<SentHeader> }) => (
  <dl class="sent">
    {headers.map(({ name, says, value }) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>
          {value !== undefined && <code>{value}</code>}{" "}
          {says !== undefined && <small>{says}</small>}
        </dd>
      </div>
    ))}
  </dl>
)

/** What an endpoint is sent, how its receiver verifies that, and the same for a shell. */
export const RequestSent = ({
  delivery,
  endpoint,
  id
}: {
  readonly delivery: Delivery
  readonly endpoint: EndpointDetail | undefined
  readonly id: string
}) => {
  const [shown, setShown] = useState<Shown>()
  const attempts = delivery.rounds.flatMap((round) => round.attempts)
  const last = attempts.at(-1)
  const headers =
    endpoint === undefined
      ? []
      : sentHeaders(endpoint, {
          event: delivery.event ?? `evt_${delivery.eventSeq}`,
          type: delivery.type ?? "",
          number: last?.number ?? 1,
          beganAt: last === undefined ? Date.now() : Date.parse(last.at) - (last.durationMs ?? 0)
        })
  const text = shown === undefined ? undefined : textOf(shown)
  return (
    <div class="card">
      <Payload {...{ id, shown, setShown }} tenant={delivery.tenant} />
      {endpoint !== undefined && (
        <>
          <details>
            <summary>
              {last === undefined ? "Headers that it is sent with" : "Headers of the last attempt"}
            </summary>
            <Headers headers={headers} />
            <p class="small">
              As the endpoint is set now. Copied for a shell it has no signature, and none of the
              endpoint's own values:{" "}
              <Copy
                label="copy as curl"
                text={curlOfAttempt(endpoint.url, headers, {
                  ...(text === undefined ? {} : { text }),
                  ...(shown === undefined ? {} : { contentType: shown.contentType })
                })}
              />
            </p>
          </details>
          <details>
            <summary>Verify it in your receiver</summary>
            {endpoint.sign === "none" ? (
              <p class="small">Its requests are not signed: anybody could have sent them.</p>
            ) : (
              <p class="small">
                Take the bytes as they came, before anything parses them, and the endpoint's secret.
              </p>
            )}
            {verifySnippets(endpoint).map(({ code, language }) => (
              <div key={language}>
                <b>{language}</b> <Copy text={code} />
                <pre class="sunk wraps">{code}</pre>
              </div>
            ))}
          </details>
        </>
      )}
    </div>
  )
}
