import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, Random } from "effect"
import { request as send } from "undici"
import type { Verification } from "../../../endpoints/verification.ts"
import type { ListenAddress, ListenRefused } from "../../../metrics/listen.ts"
import { listen } from "../../../metrics/listen.ts"
import { timers } from "../../../time/timers.ts"
import { Refused } from "../../refused.ts"
import type { Judge, Judged, Judgement } from "./judgement.ts"

/** How badly a receiver for staging behaves. */
export interface Misbehaviour {
  /** The first requests of each event that fail. */
  readonly failFirst: number | undefined
  /** Share of all requests that fail, from 0 to 100. */
  readonly percent: number | undefined
  /** The status of requests that fail; where none is told to, of all. */
  readonly status: number | undefined
  /** Requests that fail get no answer; where none is told to, none gets one. */
  readonly drop: boolean
  /** Retry-After of requests that fail, s. */
  readonly retryAfter: number | undefined
}

/** What a request is answered. */
export type Reply =
  | { readonly _tag: "Drop" }
  | { readonly _tag: "Fail"; readonly status: number; readonly retryAfter: number | undefined }
  | { readonly _tag: "Succeed"; readonly status: number }

const isSuccess = (status: number): boolean => status >= 200 && status < 300

/**
 * Decides what a request is answered.
 *
 * @param seen requests of the same event before this one.
 * @param random number in [0, 1).
 */
export const replyTo = (
  { drop, failFirst, percent, retryAfter, status }: Misbehaviour,
  seen: number,
  random: number
): Reply => {
  const isChosen =
    failFirst === undefined && percent === undefined
      ? drop || (status !== undefined && !isSuccess(status))
      : seen < (failFirst ?? 0) || random * 100 < (percent ?? 0)
  if (!isChosen) {
    const good = status !== undefined && isSuccess(status) ? status : 200
    return { _tag: "Succeed", status: good }
  }
  return drop ? { _tag: "Drop" } : { _tag: "Fail", status: status ?? 500, retryAfter }
}

/** Returns what makes no sense about a misbehaviour, as sentences about its fields. */
export const misbehaviourProblems = ({
  drop,
  failFirst,
  percent,
  retryAfter,
  status
}: Misbehaviour): ReadonlyArray<string> => {
  const isPartial = failFirst !== undefined || percent !== undefined
  return [
    ...(drop && status !== undefined
      ? ["`drop` closes the connection without an answer, so there is no `status` to send"]
      : []),
    ...(isPartial && status !== undefined && isSuccess(status)
      ? [`\`status\` ${status} is not a failure: leave it out, or take one such as 500`]
      : []),
    ...(retryAfter !== undefined &&
    (drop || !(isPartial || (status !== undefined && !isSuccess(status))))
      ? ["`retryAfter` goes with answers that fail: add `status` 429, `fail` or `percent`"]
      : [])
  ]
}

/** Maximum events that are remembered, to count their repeats. The oldest are forgotten. */
const maxEvents = 100_000

/** A request, and what it was answered. */
export interface HandledRequest {
  /** ms since the epoch. */
  readonly at: number
  readonly method: string
  readonly path: string
  /** The event's id; undefined where no header says it. */
  readonly event: string | undefined
  readonly type: string | undefined
  /** The number of the attempt, as Petrel says it. */
  readonly attempt: number | undefined
  readonly bytes: number
  /** Events of a batch. Absent for a request that is one event. */
  readonly events?: number
  /** Why the events of a verified request cannot be read. */
  readonly unreadable?: string
  readonly signature: Verification
  /** Requests of the same event before this one. */
  readonly seen: number
  /** Absent where the connection was closed without an answer. */
  readonly status?: number
  /** How long the answer was held back, ms. */
  readonly delayMs: number
}

/** Counts of all requests so far. */
export interface ReceivedCounts {
  readonly requests: number
  readonly events: number
  readonly repeats: number
  readonly badSignatures: number
  /** By status, or `no answer`. */
  readonly answers: Readonly<Record<string, number>>
}

interface ReceiverOptions {
  readonly misbehaviour: Misbehaviour
  readonly judge: Judge
  /** How long each answer is held back, ms. */
  readonly delayMs: number
  /** Where requests that do not fail are passed on to. */
  readonly forward: string | undefined
  /** Called with each request once it is answered. */
  readonly onHandled: (request: HandledRequest, body: Buffer) => void
}

/** Headers of a connection, which are not passed on. */
const ofConnection: ReadonlySet<string> = new Set([
  ...["connection", "content-length", "expect", "host", "keep-alive", "transfer-encoding"],
  ...["te", "trailer", "upgrade"]
])

const passedOn = (headers: ReceivedRequest["headers"]): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ofConnection.has(name)))

/** Receives events as a receiver in staging would, and answers as badly as it is told to. */
export class Receiver {
  readonly #options: ReceiverOptions
  readonly #random: typeof Random.Random.Service
  /** Requests of each event, by its id. */
  readonly #seen = new Map<string, number>()
  readonly #answers = new Map<string, number>()
  #requests = 0
  #events = 0
  #repeats = 0
  #badSignatures = 0

  static readonly make = (options: ReceiverOptions) =>
    Effect.map(Random.Random, (random) => new Receiver(options, random))

  private constructor(options: ReceiverOptions, random: typeof Random.Random.Service) {
    this.#options = options
    this.#random = random
  }

  get counts(): ReceivedCounts {
    return {
      requests: this.#requests,
      events: this.#events,
      repeats: this.#repeats,
      badSignatures: this.#badSignatures,
      answers: Object.fromEntries(this.#answers)
    }
  }

  /** Handles one request: judges, decides, waits, answers, and reports. */
  readonly receive = (request: ReceivedRequest): void => {
    const at = timers.wallMs()
    void Promise.resolve(this.#options.judge(request, at)).then((judgement) =>
      this.#handle(request, at, judgement)
    )
  }

  #handle(request: ReceivedRequest, at: number, judgement: Judgement): void {
    const { body, headers, method, path } = request
    const { delayMs, misbehaviour } = this.#options
    const { handshake, ...told } = judgement
    const seen = this.#note(judgement)
    const reply = replyTo(misbehaviour, seen, this.#random.nextDoubleUnsafe())
    const attempt = Number(headers["petrel-attempt"])
    const report = (status: number | undefined) => {
      const answer = status === undefined ? "no answer" : String(status)
      this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1)
      this.#options.onHandled(
        {
          ...{ at, method, path, bytes: body.length, seen, delayMs, ...told },
          attempt: Number.isInteger(attempt) ? attempt : undefined,
          ...(status === undefined ? {} : { status })
        },
        body
      )
    }
    if (handshake !== undefined) {
      request.respond(handshake.status, handshake.headers, Buffer.from(handshake.body))
      report(handshake.status)
    } else if (delayMs === 0) this.#answer(request, reply, report)
    else timers.after(delayMs, () => this.#answer(request, reply, report))
  }

  #note({ event, handshake, signature }: Judgement): number {
    this.#requests++
    if (signature.result === "bad") this.#badSignatures++
    if (handshake !== undefined) return 0
    const seen = event === undefined ? 0 : (this.#seen.get(event) ?? 0)
    if (seen > 0) this.#repeats++
    else this.#events++
    if (event !== undefined) this.#seen.set(event, seen + 1)
    const [oldest] = this.#seen.keys()
    if (this.#seen.size > maxEvents && oldest !== undefined) this.#seen.delete(oldest)
    return seen
  }

  #answer(
    request: ReceivedRequest,
    reply: Reply,
    report: (status: number | undefined) => void
  ): void {
    const { forward } = this.#options
    switch (reply._tag) {
      case "Drop":
        request.drop()
        report(undefined)
        break
      case "Fail": {
        const { retryAfter, status } = reply
        request.respond(
          status,
          retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }
        )
        report(status)
        break
      }
      case "Succeed":
        if (forward !== undefined) {
          void this.#passOn(request, forward, report)
          break
        }
        request.respond(reply.status, {})
        report(reply.status)
    }
  }

  /** Passes a request on with its bytes and headers, and answers as it was answered. */
  async #passOn(
    { body, drop, headers, respond }: ReceivedRequest,
    forward: string,
    report: (status: number | undefined) => void
  ): Promise<void> {
    try {
      const answer = await send(forward, { method: "POST", headers: passedOn(headers), body })
      const bytes = Buffer.from(await answer.body.arrayBuffer())
      const kept = Object.entries(answer.headers).flatMap(([name, value]) =>
        ofConnection.has(name) || value === undefined ? [] : [[name, String(value)] as const]
      )
      respond(answer.statusCode, Object.fromEntries(kept), bytes)
      report(answer.statusCode)
    } catch {
      drop()
      report(undefined)
    }
  }
}

/** Maximum bytes of a body that are taken; the connection of a longer one is closed. */
const maxBodyBytes = 16 * 1024 * 1024

/** A request with its whole body, and the answer that it waits for. */
export interface ReceivedRequest extends Judged {
  readonly respond: (
    status: number,
    headers: Readonly<Record<string, string>>,
    body?: Uint8Array
  ) => void
  /** Closes the connection without an answer. */
  readonly drop: () => void
}

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? "")
    ])
  )

const collect = (
  incoming: IncomingMessage,
  response: ServerResponse,
  receive: (request: ReceivedRequest) => void
): void => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  incoming.on("error", () => response.destroy())
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBodyBytes) incoming.destroy()
    else chunks.push(chunk)
  })
  incoming.on("end", () => {
    receive({
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: headersOf(incoming),
      body: Buffer.concat(chunks),
      respond: (status, headers, body) => {
        if (response.destroyed) return
        response.writeHead(status, { ...headers })
        response.end(body)
      },
      drop: () => response.destroy()
    })
  })
}

const problemOf = (error: ListenRefused, port: number): string => {
  switch (error.code) {
    case "EADDRINUSE":
      return `port ${port} is in use: choose another one with --port, or 0 for any free one`
    case "EACCES":
      return `this user may not listen on port ${port}: choose one above 1023 with --port`
    default:
      return `cannot listen on port ${port}: ${error.message}`
  }
}

/**
 * Receives HTTP requests until the scope closes. Returns the port. Fails with Refused where it
 * cannot listen.
 */
export const receiveRequests = (
  address: ListenAddress,
  receive: (request: ReceivedRequest) => void
) =>
  Effect.suspend(() => {
    const server = createServer((incoming, response) => collect(incoming, response, receive))
    return Effect.acquireRelease(listen(server, address), () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
    )
  }).pipe(Effect.mapError((error) => new Refused({ message: problemOf(error, address.port) })))
