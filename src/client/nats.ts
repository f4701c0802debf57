import { answered, type Request, type Transport } from "./calling.ts"
import { maxTimerMs, unlessAborted } from "./machine.ts"
import { type Answer, PetrelProblem } from "./problem.ts"

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
const headerBytes = 4_096

const encoder = new TextEncoder()

/** What stands in a subject for all tenants, and for what is of none. */
const allTenants = "_"

/** Waits beyond the time of the request itself, ms, so that this one ends it. */
const laterMs = 1_000

const payloadOf = ({ body, input }: Request): Uint8Array =>
  body?.bytes ?? encoder.encode(JSON.stringify(input))

/** Returns the subject of a request. */
const subjectOf = (root: string, { id, tenant = "*" }: Request): string => {
  if (tenant !== "*" && !/^[^\s.*>]+$/.test(tenant))
    throw new TypeError(`${id}: no tenant has the name ${JSON.stringify(tenant)}`)
  return `${root}.api.v1.${tenant === "*" ? allTenants : tenant}.${id}`
}

/** Refuses what the broker would not pass on, as a console refuses what is too large over HTTP. */
const checkSize = ({ id: operation }: Request, bytes: number, most = bytes): void => {
  if (bytes <= most) return
  const said = `${operation}: a request of ${bytes} bytes: the broker passes on at most ${most}`
  const problem = { code: "too-large", status: 413, operation, errors: [] } as const
  throw new PetrelProblem(said, { ...problem, retryAfter: undefined })
}

/** Sends requests over NATS, to the service that consoles offer. */
export const overNats = ({ connection, headers: make, root = "petrel" }: NatsPlace): Transport => ({
  maxBodyBytes: () => (connection.info?.max_payload ?? usualMaxPayload) - headerBytes,
  sender: (request) => {
    const subject = subjectOf(root, request)
    const payload = payloadOf(request)
    checkSize(request, payload.length, connection.info?.max_payload)
    const given = Object.entries(request.headers)
    const headers = given.length === 0 ? undefined : make()
    for (const [name, value] of given) headers?.set(name, value)
    const others = headers === undefined ? {} : { headers }
    return async (signal, timeoutMs): Promise<Answer> => {
      const options = { timeout: Math.min(maxTimerMs, timeoutMs + laterMs), ...others }
      const asked = answered(request.id, () => connection.request(subject, payload, options))
      const { data, headers: got } = await unlessAborted(asked, signal)
      const header = (name: string) => got?.get(name) || undefined
      return { status: Number(header("status") ?? 0), header, body: data }
    }
  },
  follower: undefined
})
