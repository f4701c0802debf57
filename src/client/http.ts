import {
  answered,
  type FollowedAnswer,
  type Request,
  type Transport,
  type WrittenBody
} from "./calling.ts"
import { unlessAborted } from "./machine.ts"
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

/** Refuses a header that `fetch` would refuse, in a way that looks as if nobody had answered. */
const checkHeader = (id: string, name: string, value: string): void => {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
    throw new TypeError(`${id}: ${name} has a character that no header can have`)
}

async function* piecesOf(id: string, { body }: FetchAnswer): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await answered(id, () => reader.read())
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

const whole = async (id: string, response: FetchAnswer): Promise<Answer> => ({
  status: response.status,
  header: headerOf(response),
  body: new Uint8Array(await answered(id, () => response.arrayBuffer()))
})

/**
 * Refuses a URL that is none of a server, without saying it: it may hold a secret. In a page of the
 * console itself it may be empty.
 */
const checkUrl = (url: string): void => {
  if (url !== "" && !(/^https?:\/\/[^?#@]+$/.test(url) && URL.canParse(url)))
    throw new TypeError(
      "url must be of http or https, such as http://127.0.0.1:4280, without a user, ? or #"
    )
}

/**
 * Sends requests over HTTP.
 *
 * @throws TypeError if the URL is none of a server.
 */
export const overHttp = ({ fetch: given, token, url }: HttpPlace): Transport => {
  checkUrl(url)
  const base = url.replace(/\/+$/, "")
  // Browsers want it called as a function of their own.
  const ask: Fetch = given ?? ((target, init) => globalThis.fetch(target, init))
  /** Asks for the token to use now. What its function throws is the program's own. */
  const authorization = async ({ id, operation }: Request, signal: AbortSignal) => {
    if (operation.isOpen === true || token === undefined) return {}
    const secret =
      typeof token === "function" ? await unlessAborted(Promise.resolve(token()), signal) : token
    if (secret === undefined) return {}
    checkHeader(id, "the token", secret)
    return { authorization: `Bearer ${secret}` }
  }
  const starter = (request: Request) => {
    const { headers: given, id, operation } = request
    const { target, fields } = placed(request)
    const written = bodyOf(request, fields)
    const body = written === undefined ? {} : { body: copyOf(written.bytes) }
    const headers = {
      ...given,
      ...(written === undefined ? {} : { "content-type": written.contentType })
    }
    for (const [name, value] of Object.entries(headers)) checkHeader(id, name, value)
    return async (signal: AbortSignal): Promise<FetchAnswer> => {
      const own = await authorization(request, signal)
      const init = { method: operation.method, headers: { ...headers, ...own }, ...body }
      return answered(id, () => ask(`${base}${target}`, { ...init, redirect: "manual", signal }))
    }
  }
  return {
    maxBodyBytes: () => maxBodyBytes,
    sender: (request) => {
      const start = starter(request)
      return async (signal) => whole(request.id, await start(signal))
    },
    follower: (request) => {
      const start = starter(request)
      return async (signal): Promise<FollowedAnswer> => {
        const response = await start(signal)
        return response.status === 200
          ? {
              answer: { status: 200, header: headerOf(response), body: new Uint8Array() },
              pieces: piecesOf(request.id, response)
            }
          : { answer: await whole(request.id, response), pieces: undefined }
      }
    }
  }
}
