import type { NatsConnection } from "@nats-io/transport-node"
import { headers as newHeaders } from "@nats-io/transport-node"
import { Effect } from "effect"

/** An answer of the NATS service. */
export interface ServiceAnswer {
  /** The status of an error; undefined for a success. */
  readonly code: number | undefined
  readonly error: string | undefined
  readonly header: (name: string) => string | undefined
  /** Its body, if it is JSON. */
  readonly json: Record<string, unknown>
  readonly text: string
}

/** How long an answer may take, ms. */
const timeout = 10_000

/** Asks a NATS service. A body that is no text is sent as JSON. Dies where nobody answers. */
export const askOverNats = (
  connection: NatsConnection,
  subject: string,
  body: unknown = "",
  given: Readonly<Record<string, string>> = {}
) =>
  Effect.promise(async (): Promise<ServiceAnswer> => {
    const headers = newHeaders()
    for (const [name, value] of Object.entries(given)) headers.set(name, value)
    const message = await connection.request(
      subject,
      typeof body === "string" ? body : JSON.stringify(body),
      { timeout, headers }
    )
    const header = (name: string) => message.headers?.get(name) || undefined
    const code = header("Nats-Service-Error-Code")
    const text = message.string()
    return {
      code: code === undefined ? undefined : Number(code),
      error: header("Nats-Service-Error"),
      header,
      json: text.startsWith("{") ? JSON.parse(text) : {},
      text
    }
  })
