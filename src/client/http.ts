import type { FollowedAnswer, Request, Transport, WrittenBody } from "./calling.ts"
import type { Answer } from "./problem.ts"

/** What is needed of an answer of `fetch`. */
export interface FetchAnswer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: {
    getReader(): {
      read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
      cancel(): Promise<void>
    }
  } | null
  arrayBuffer(): Promise<ArrayBuffer>
}

/** What is needed of `fetch`. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string
    readonly headers: Record<string, string>
    readonly body?: ArrayBuffer
    readonly redirect: "manual"
    readonly signal: AbortSignal
  }
) => Promise<FetchAnswer>

/** Where a console is, and who asks it. */
export interface HttpPlace {
  /** Such as `https://petrel.example.com`; in a page of the console itself it may be empty. */
  readonly url: string
  /** A token, or what returns the one to use now. */
  readonly token?: string | (() => string | Promise<string>) | undefined
  /** (Default: the global one) */
  readonly fetch?: Fetch | undefined
}

/** Upper bound of a request that publishes, bytes; the server takes 16 MiB. */
const maxBodyBytes = 4 * 1024 * 1024

const encoder = new TextEncoder()

/** Returns a value of a parameter as it stands in a URL. */
const textOf = (value: unknown): string =>
  value instanceof Date ? value.toISOString() : String(value)

/** Splits the input of a request into path and query, and the fields of its body. */
const placed = ({ input, operation, tenant }: Request) => {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(name === "tenant" ? (tenant ?? "") : textOf(input[name]))
  )
  const query = new URLSearchParams()
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined || operation.path.includes(`{${name}}`)) continue
    if (operation.query?.includes(name) !== true) fields[name] = value
    else for (const one of [value].flat()) query.append(name, textOf(one))
  }
  const search = query.toString()
  return { target: search === "" ? path : `${path}?${search}`, fields }
}

const bodyOf = (
  { body, operation }: Request,
  fields: Readonly<Record<string, unknown>>
): WrittenBody | undefined => {
  if (body !== undefined || operation.hasBody !== true) return body
  return { bytes: encoder.encode(JSON.stringify(fields)), contentType: "application/json" }
}

const copyOf = (bytes: Uint8Array): ArrayBuffer => {
  const copy = new ArrayBuffer(bytes.byteLength)
  new Uint8Array(copy).set(bytes)
  return copy
}

async function* piecesOf({ body }: FetchAnswer): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      if (value !== undefined) yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

const headerOf =
  ({ headers }: FetchAnswer) =>
  (name: string) =>
    headers.get(name) ?? undefined

const whole = async (response: FetchAnswer): Promise<Answer> => ({
  status: response.status,
  header: headerOf(response),
  body: new Uint8Array(await response.arrayBuffer())
})

/**
 * Sends requests over HTTP.
 *
 * @throws TypeError if the URL is none of a server.
 */
export const overHttp = ({ fetch: given, token, url }: HttpPlace): Transport => {
  if (url !== "" && !/^https?:\/\//.test(url))
    throw new TypeError(`url must be of http or https, such as http://127.0.0.1:4280: it is ${url}`)
  const base = url.replace(/\/+$/, "")
  // Browsers want it called as a function of their own.
  const ask: Fetch = given ?? ((target, init) => globalThis.fetch(target, init))
  const start = async (request: Request, signal: AbortSignal): Promise<FetchAnswer> => {
    const { target, fields } = placed(request)
    const body = bodyOf(request, fields)
    const secret =
      request.operation.isOpen === true
        ? undefined
        : typeof token === "function"
          ? await token()
          : token
    return ask(`${base}${target}`, {
      method: request.operation.method,
      headers: {
        ...request.headers,
        ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
        ...(body === undefined ? {} : { "content-type": body.contentType })
      },
      ...(body === undefined ? {} : { body: copyOf(body.bytes) }),
      redirect: "manual",
      signal
    })
  }
  return {
    maxBodyBytes: () => maxBodyBytes,
    send: async (request, signal) => whole(await start(request, signal)),
    follow: async (request, signal): Promise<FollowedAnswer> => {
      const response = await start(request, signal)
      return response.status === 200
        ? {
            answer: { status: 200, header: headerOf(response), body: new Uint8Array() },
            pieces: piecesOf(response)
          }
        : { answer: await whole(response), pieces: undefined }
    }
  }
}
