import type { Request, Transport } from "./calling.ts"
import { unlessAborted } from "./machine.ts"
import type { Answer } from "./problem.ts"

/** What is needed of the headers of a message. */
export interface NatsHeaders {
  get(name: string): string
  set(name: string, value: string): void
}

/** What is needed of a connection: `connect` of `@nats-io/transport-node` and its kin returns one. */
export interface NatsConnection {
  readonly info?: { readonly max_payload: number } | undefined
  request(
    subject: string,
    payload: Uint8Array,
    // biome-ignore lint/suspicious/noExplicitAny: each client has a class of its own for headers.
    options: { timeout: number; headers?: any }
  ): Promise<{ readonly data: Uint8Array; readonly headers?: NatsHeaders | undefined }>
}

/** The broker that a console listens to, and who asks it. */
export interface NatsPlace {
  /** It stays open when the client is no longer used. */
  readonly connection: NatsConnection
  /** `headers` of the package that the connection comes from. */
  readonly headers: () => NatsHeaders
  /** What the subjects of the installation begin with. (Default: petrel) */
  readonly root?: string | undefined
}

/** Bytes that the broker passes on, where the connection does not know. */
const usualMaxPayload = 1024 * 1024
/** Bytes of a message that are not its body. */
const roomForHeaders = 4_096

const encoder = new TextEncoder()

/** What stands in a subject for all tenants, and for what is of none. */
const allTenants = "_"

/** Waits beyond the time of the request itself, ms, so that this one ends it. */
const laterMs = 1_000

const payloadOf = ({ body, input }: Request): Uint8Array =>
  body?.bytes ?? encoder.encode(JSON.stringify(input))

/** Sends requests over NATS, to the service that consoles offer. */
export const overNats = ({ connection, headers: make, root = "petrel" }: NatsPlace): Transport => ({
  maxBodyBytes: () => (connection.info?.max_payload ?? usualMaxPayload) - roomForHeaders,
  send: async (request, signal, timeoutMs): Promise<Answer> => {
    const { id, tenant = "*" } = request
    const given = Object.entries(request.headers)
    const headers = given.length === 0 ? undefined : make()
    for (const [name, value] of given) headers?.set(name, value)
    const asked = connection.request(
      `${root}.api.v1.${tenant === "*" ? allTenants : tenant}.${id}`,
      payloadOf(request),
      { timeout: timeoutMs + laterMs, ...(headers === undefined ? {} : { headers }) }
    )
    const { data, headers: answered } = await unlessAborted(asked, signal)
    const header = (name: string) => answered?.get(name) || undefined
    return { status: Number(header("status") ?? 0), header, body: data }
  },
  follow: undefined
})
