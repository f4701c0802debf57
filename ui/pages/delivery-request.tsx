import { useState } from "preact/hooks"
import type { Delivery, EndpointDetail } from "../../src/client/client.ts"
import { Action, Copy } from "../parts.tsx"
import { curlOfAttempt, type SentHeader, sentHeaders, verifySnippets } from "../sent-headers.ts"
import { may, petrel } from "../session.ts"

/** Bytes that are shown in hexadecimal, and those of a line, which fits a phone. */
const [mostHex, lineHex] = [4_096, 8]

const hexOf = (bytes: Uint8Array): string => {
  const lines: Array<string> = []
  for (let at = 0; at < Math.min(bytes.length, mostHex); at += lineHex) {
    const part = [...bytes.subarray(at, at + lineHex)]
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ")
    const text = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "."))
    lines.push(`${at.toString(16).padStart(3, "0")} ${hex.padEnd(23)} ${text.join("")}`)
  }
  if (bytes.length > mostHex) lines.push(`… and ${bytes.length - mostHex} bytes more`)
  return lines.join("\n")
}

/** JSON that knows the text of what it reads. Where a browser has none, a body is shown as it is. */
interface ExactJson extends Pick<JSON, "stringify"> {
  readonly rawJSON: (source: string) => unknown
  readonly parse: (
    text: string,
    revive: (key: string, part: unknown, context: { readonly source: string }) => unknown
  ) => unknown
}

/** Returns a text; undefined where it is none. */
const utf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Returns a body for people: JSON with indents, other text as it is, anything else in hexadecimal. */
export const bodyText = (bytes: Uint8Array): string => {
  const text = utf8(bytes)
  if (text === undefined) return hexOf(bytes)
  try {
    const { parse, rawJSON, stringify } = JSON as unknown as ExactJson
    // Numbers as they were written: 12345678901234567890 is no number of JavaScript, and 1.0 another text.
    const value = parse(text, (_, part, { source }) =>
      typeof part === "number" ? rawJSON(source) : part
    )
    return stringify(value, null, 2)
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
  const text = shown === undefined ? "" : isHex ? hexOf(shown.body) : bodyText(shown.body)
  return (
    <>
      <h2>Payload</h2>
      {!may("payloads:read") ? (
        <small>It needs the scope payloads:read.</small>
      ) : shown === undefined ? (
        <Action
          does={async () => {
            setShown(await petrel.deliveries.deliveryBody({ tenant, delivery: id }))
            return ""
          }}
        >
          Show
        </Action>
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
  const text =
    shown === undefined || shown.body.length > mostInCommand ? undefined : utf8(shown.body)
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
