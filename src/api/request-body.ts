import { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { ByteSize, Context, Effect } from "effect"
import { HttpIncomingMessage, HttpServerError, HttpServerRequest } from "effect/http"
import type { RefusalCells } from "../metrics/refused-requests.ts"
import { Shares } from "../policy/shares.ts"
import { bytesText } from "../text/quantities.ts"
import { timers } from "../time/timers.ts"
import { type BareProblem, unavailableProblem } from "./problems.ts"

/**
 * Bytes of bodies in memory at the same time. One tenant has half of it where no other one publishes:
 * four of the largest bodies.
 */
const maxBodiesBytes = 128 * 1024 * 1024
/**
 * What one byte of JSON becomes at most once it is decoded, in addition to the body itself, bytes: `[0,0,…` has
 * two letters for an element of 8 bytes, and `{"a":{},…` five for an object. Events are not decoded.
 */
const decodedBytes = 20
/** In each such time, ms, this many bytes must come, or the rest: a pace of 8 KiB a second. */
const paceMs = 4_000
const paceBytes = 32 * 1024

/** A body that is not read to its end. */
export class BodyRefused extends Error {
  readonly problem: BareProblem
  /** Of the answer. The rest of the body is not waited for. */
  readonly headers: Readonly<Record<string, string>>

  constructor(problem: BareProblem, headers: Readonly<Record<string, string>> = {}) {
    super(problem.detail)
    this.problem = problem
    this.headers = { connection: "close", ...headers }
  }
}

const tooLarge = (max: number) =>
  new BodyRefused({
    status: 413,
    name: "too-large",
    title: "The request is too large",
    detail: `the body is larger than the ${bytesText(max)} that this route takes`
  })

/** Nothing is unpacked: a receiver could not be told what it gets, and a small body may be a large one. */
const encoded = new BodyRefused(
  {
    status: 415,
    name: "unsupported-media-type",
    title: "The media type of the body is not supported here",
    detail: "the body has a Content-Encoding: send it as it is, without gzip or the like"
  },
  { "accept-encoding": "identity" }
)

/** True for a body that is sent as it is, whatever Content-Encoding says of that. */
const isPlain = (contentEncoding = ""): boolean =>
  contentEncoding.split(",").every((coding) => /^\s*(?:identity)?\s*$/i.test(coding))

const noMemory = new BodyRefused(
  unavailableProblem(
    "too many and too large bodies of this tenant are being sent at the same time: try again",
    1
  )
)

const tooSlow = new BodyRefused({
  status: 408,
  name: "request-timeout",
  title: "The request comes too slowly",
  detail: `of its body less than ${bytesText(paceBytes)} came within ${paceMs / 1_000} s: send it again, faster or in parts`
})

const brokenOff = new BodyRefused({
  status: 400,
  name: "invalid-request",
  title: "The request is not valid",
  detail: "the body ended before it was complete"
})

/** What bounds the bodies of one server. */
export class RequestBodies extends Context.Service<
  RequestBodies,
  { readonly shares: Shares; readonly paceMs: number; readonly refused: RefusalCells }
>()("petrel/api/RequestBodies") {
  static readonly make = (
    refused: RefusalCells,
    bounds: { readonly bytes?: number | undefined; readonly paceMs?: number | undefined } = {}
  ) =>
    RequestBodies.of({
      shares: new Shares(bounds.bytes ?? maxBodiesBytes),
      paceMs: bounds.paceMs ?? paceMs,
      refused
    })
}

/** How much is reserved for what has come first, bytes, and how many times as much for what is more. */
const firstBytes = 64 * 1024
const growth = 4

/**
 * The bytes of a body, in one piece that grows with what comes: at most four times that is reserved, and
 * of what is reserved the machine gives what was written. So neither does a length that was only declared
 * take memory, nor a second piece the whole body once more.
 */
class BodyBytes {
  readonly #most: number
  #bytes = new Uint8Array()
  length = 0

  /** @param most how many will come, bytes. */
  constructor(most: number) {
    this.#most = most
  }

  add(chunk: Uint8Array): void {
    const length = this.length + chunk.length
    if (length > this.#bytes.length) {
      const reserved = Math.max(firstBytes, this.#bytes.length * growth)
      this.#move(Math.max(length, Math.min(this.#most, reserved)))
    }
    this.#bytes.set(chunk, this.length)
    this.length = length
  }

  /** Returns all of it. */
  whole(): ArrayBuffer {
    if (this.length < this.#bytes.length) this.#move(this.length)
    return this.#bytes.buffer
  }

  /** Gives its memory back now: it would wait for the next collection of garbage. */
  free(): void {
    freeBytes(this.#bytes)
  }

  #move(size: number): void {
    const former = this.#bytes
    // Slow as opposed to pooled: it has a buffer of its own. Without zeros, which would take memory.
    const { buffer } = Buffer.allocUnsafeSlow(size)
    this.#bytes = new Uint8Array(buffer)
    this.#bytes.set(former.subarray(0, this.length))
    freeBytes(former)
  }
}

/** Gives the memory of bytes back that nobody else has. */
export const freeBytes = ({ buffer }: Uint8Array<ArrayBuffer>): void => {
  buffer.transfer(0)
}

/** The body of one request. What has come of it counts for its tenant until it is given back. */
class CountedBody {
  readonly #bodies: RequestBodies["Service"]
  readonly #tenant: string
  #bytes = 0

  constructor(bodies: RequestBodies["Service"], tenant: string) {
    this.#bodies = bodies
    this.#tenant = tenant
  }

  /** Counts what has come. Returns false if that is more than the tenant may have in memory. */
  count(bytes: number): boolean {
    if (!this.#bodies.shares.take(this.#tenant, bytes)) {
      this.#bodies.refused.note("bodies")
      return false
    }
    this.#bytes += bytes
    return true
  }

  giveBack(): void {
    if (this.#bytes > 0) this.#bodies.shares.give(this.#tenant, this.#bytes)
    this.#bytes = 0
  }

  /**
   * Reads the body as it comes.
   *
   * @param declared how long it is, bytes; 0 where nothing says so.
   */
  read(
    source: IncomingMessage,
    max: number,
    declared: number
  ): Effect.Effect<ArrayBuffer, BodyRefused> {
    return Effect.callback((resume) => {
      const { paceMs, refused } = this.#bodies
      const bytes = new BodyBytes(declared > 0 ? declared : max)
      let bytesBefore = 0
      const stop = () => {
        timers.cancel(pace)
        source.off("data", onData).off("end", onEnd).off("close", onBreak).off("error", onBreak)
      }
      const end = (result: Effect.Effect<ArrayBuffer, BodyRefused>) => {
        stop()
        resume(result)
      }
      const refuse = (why: BodyRefused) => {
        source.pause()
        bytes.free()
        end(Effect.fail(why))
      }
      const onData = (chunk: Buffer) => {
        if (bytes.length + chunk.length > max) return refuse(tooLarge(max))
        if (!this.count(chunk.length)) return refuse(noMemory)
        bytes.add(chunk)
      }
      const onEnd = () => end(Effect.sync(() => bytes.whole()))
      const onBreak = () => refuse(brokenOff)
      const pace = timers.every(paceMs, () => {
        if (bytes.length - bytesBefore >= paceBytes) bytesBefore = bytes.length
        else {
          refused.note("pace")
          refuse(tooSlow)
        }
      })
      source.on("data", onData).on("end", onEnd).on("close", onBreak).on("error", onBreak)
      return Effect.sync(() => {
        stop()
        bytes.free()
      })
    })
  }
}

const textDecoder = new TextDecoder()

const unread = (request: HttpServerRequest.HttpServerRequest) => (cause: BodyRefused) =>
  new HttpServerError.HttpServerError({
    reason: new HttpServerError.RequestParseError({ request, cause })
  })

/** Returns the request with a body that is counted. All forms of a body are made of its bytes. */
const withCounted = (
  request: HttpServerRequest.HttpServerRequest,
  body: CountedBody
): HttpServerRequest.HttpServerRequest => {
  const { source } = request
  const arrayBuffer = Effect.gen(function* () {
    if (!isPlain(request.headers["content-encoding"])) return yield* unread(request)(encoded)
    const max = yield* HttpIncomingMessage.MaxBodySize
    const most = max === undefined ? Number.POSITIVE_INFINITY : ByteSize.toNumberUnsafe(max)
    const declared = Number(request.headers["content-length"] ?? 0)
    if (declared > most) return yield* unread(request)(tooLarge(most))
    if (!(source instanceof IncomingMessage)) {
      // A message over NATS has come as a whole.
      if (!body.count(declared)) return yield* unread(request)(noMemory)
      return yield* request.arrayBuffer
    }
    if (source.headers.expect !== undefined)
      NodeHttpServerRequest.toServerResponse(request).writeContinue()
    return yield* Effect.mapError(body.read(source, most, declared), unread(request))
  })
  const text = Effect.flatMap(arrayBuffer, (bytes) =>
    body.count(bytes.byteLength * decodedBytes)
      ? Effect.sync(() => textDecoder.decode(bytes))
      : unread(request)(noMemory)
  )
  return Object.create(request, { arrayBuffer: { value: arrayBuffer }, text: { value: text } })
}

/**
 * Lets a request be answered whose body counts for its tenant, by what has come of it and until it
 * is answered. Reading a body fails, with a `BodyRefused` as its cause, where it is too large or too
 * slow, or its tenant has too much in memory.
 */
export const countingBody = <A, E, R>(
  bodies: RequestBodies["Service"],
  tenant: string,
  answered: Effect.Effect<A, E, R>
) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const body = new CountedBody(bodies, tenant)
    return answered.pipe(
      Effect.provideService(HttpServerRequest.HttpServerRequest, withCounted(request, body)),
      Effect.ensuring(Effect.sync(() => body.giveBack()))
    )
  })

/** Reads the body of the request, of at most so many bytes. */
export const readBody = (max: number) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ arrayBuffer }) => arrayBuffer).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(max)),
    // What surrounds all routes answers it.
    Effect.orDie,
    Effect.map((buffer) => new Uint8Array(buffer))
  )
