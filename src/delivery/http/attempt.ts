import type { Socket } from "node:net"
import type { Agent, Dispatcher } from "undici"
import type { AttemptResult, Redirect, Response } from "../../domain/outcome.ts"
import { isFollowed, redirected, type Target } from "../../endpoints/target.ts"
import { spanText } from "../../text/quantities.ts"
import type { Timer } from "../../time/timers.ts"
import { timers } from "../../time/timers.ts"
import { type ConnectionTerms, dispatchFor, freshConnectMs } from "./connector.ts"
import { type Failure, failure, failureOf } from "./failure.ts"

/** Maximum bytes of an answer that are read. The connection of a longer one is closed. */
const maxAnswerBytes = 64 * 1024
/** Maximum bytes of an answer that are kept. */
const maxSnippetBytes = 1024
const maxHeaderLength = 256
/** Longest delay of a Node timer, ms, about 24 days: a longer one fires at once. */
const maxTimerMs = 2 ** 31 - 1

/** Headers of an answer that help to diagnose a failure. None may carry a credential. */
const keptHeaders = [
  "content-type",
  "content-length",
  "date",
  "server",
  "via",
  "retry-after",
  "allow",
  "location",
  "x-request-id",
  "x-correlation-id",
  "x-amzn-requestid",
  "x-amz-cf-id",
  "cf-ray",
  "x-cache",
  "traceparent"
]

export interface AttemptRequest extends ConnectionTerms {
  readonly target: Target
  /** Name, value, name, value…; valid as HTTP headers. */
  readonly headers: ReadonlyArray<string>
  /**
   * The endpoint's own headers, in the same form. They may be credentials, so no other origin gets
   * them.
   */
  readonly ownHeaders: ReadonlyArray<string>
  readonly body: Uint8Array
  /** Time limit of the whole attempt, ms: connections, redirects, the last byte of the answer. */
  readonly timeoutMs: number
  /** Maximum redirects to follow. With 0, a redirect is an answer like any other. */
  readonly redirects: number
  /** Origins that a redirect may lead to, in addition to the target's own. */
  readonly redirectsTo: ReadonlyArray<string>
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2]

const abandoned = new Error("the attempt is over")

const tenths = (ms: number): number => Math.round(ms * 10) / 10

const tenthsOf = (ms: number | undefined) => (ms === undefined ? undefined : tenths(ms))

const headerOf = (headers: Headers, name: string): string | undefined => {
  const value = headers[name]
  const text = typeof value === "string" ? value : value?.join(", ")
  return text === undefined || text.length <= maxHeaderLength
    ? text
    : text.slice(0, maxHeaderLength)
}

/** One request and its answer: the first of an attempt, or that of a redirect. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly attempt: HttpAttempt
  readonly target: Target
  controller: Dispatcher.DispatchController | undefined
  /** Connects for this request alone, until the request is sent. */
  connecting: Socket | undefined
  status = 0
  headers: Headers = {}
  bytes = 0
  snippet: Buffer | undefined
  over = false

  constructor(attempt: HttpAttempt, target: Target) {
    this.attempt = attempt
    this.target = target
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The attempt ended while the request waited for its connection: it must not be sent.
    if (this.over) {
      controller.abort(abandoned)
      return
    }
    this.controller = controller
    this.connecting = undefined
    this.attempt.connected(freshConnectMs())
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (this.over || status < 200) return
    this.status = status
    this.headers = headers
    this.attempt.firstByte()
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.over) return
    const left = maxSnippetBytes - (this.snippet?.length ?? 0)
    if (left > 0) {
      const piece = chunk.length > left ? chunk.subarray(0, left) : chunk
      this.snippet = this.snippet === undefined ? piece : Buffer.concat([this.snippet, piece])
    }
    this.bytes += chunk.length
    if (this.bytes > maxAnswerBytes) {
      this.bytes = maxAnswerBytes
      this.abort()
      this.attempt.answered(this)
    }
  }

  onResponseEnd(): void {
    if (this.over) return
    this.over = true
    this.attempt.answered(this)
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    if (this.over) return
    this.over = true
    this.attempt.failed(this, failureOf(error, this.status !== 0))
  }

  /** Aborts the request: its connection is closed, also while it is made. */
  abort(): void {
    if (this.over) return
    this.over = true
    this.controller?.abort(abandoned)
    this.connecting?.destroy(abandoned)
  }

  get response(): Response {
    const headers: Record<string, string> = {}
    for (const name of keptHeaders) {
      const value = headerOf(this.headers, name)
      // The query of a location often carries tokens.
      if (value !== undefined)
        headers[name] = name === "location" ? (value.split(/[?#]/, 1)[0] ?? "") : value
    }
    return { headers, body: this.#text(), bytes: this.bytes }
  }

  #text(): string {
    if (this.snippet === undefined) return ""
    if (this.bytes === this.snippet.length) return this.snippet.toString("utf8")
    // The body is cut: stream mode drops a character that the cut splits, instead of garbling it.
    return new TextDecoder().decode(this.snippet, { stream: true })
  }
}

class HttpAttempt implements Running {
  readonly #agent: Agent
  readonly #afterParsing: AfterParsing
  readonly #request: AttemptRequest
  readonly #done: (result: AttemptResult) => void
  readonly #keepsAlive: boolean
  readonly #startedAt = timers.monotonicMs()
  readonly #timer: Timer
  #exchange: Exchange
  #over = false
  #ownHeaders = true
  readonly #redirects: Array<Redirect> = []
  #connectMs: number | undefined
  #firstByteMs: number | undefined

  constructor(
    agent: Agent,
    request: AttemptRequest,
    done: (result: AttemptResult) => void,
    keepsAlive: boolean,
    afterParsing: AfterParsing
  ) {
    this.#keepsAlive = keepsAlive
    this.#agent = agent
    this.#afterParsing = afterParsing
    this.#request = request
    this.#done = done
    this.#timer = timers.after(Math.min(request.timeoutMs, maxTimerMs), onTimeout, this)
    this.#exchange = this.#send(request.target)
  }

  connected(ms: number | undefined): void {
    if (ms !== undefined) this.#connectMs = (this.#connectMs ?? 0) + ms
  }

  firstByte(): void {
    this.#firstByteMs = timers.monotonicMs() - this.#startedAt
  }

  answered(exchange: Exchange): void {
    if (this.#request.redirects > 0 && isFollowed(exchange.status)) this.#follow(exchange)
    else this.#settle(exchange)
  }

  failed(exchange: Exchange, error: Failure): void {
    this.#settle(exchange, error)
  }

  timedOut(): void {
    const { status, controller } = this.#exchange
    const missing =
      status !== 0 ? "complete answer" : controller !== undefined ? "answer" : "connection"
    this.#end(failure("timeout", `no ${missing} within ${spanText(this.#request.timeoutMs)}`))
  }

  end(why: string): void {
    if (!this.#over) this.#end(failure("interrupted", why))
  }

  interrupt(): void {
    if (this.#over) return
    this.#over = true
    timers.cancel(this.#timer)
    this.#exchange.abort()
  }

  #end(error: Failure): void {
    this.#exchange.abort()
    this.#settle(this.#exchange, error)
  }

  #send(target: Target): Exchange {
    const { body, headers, ownHeaders } = this.#request
    const exchange = new Exchange(this, target)
    this.#exchange = exchange
    try {
      const connecting = dispatchFor(
        this.#request,
        this.#agent,
        {
          origin: target.origin,
          path: target.path,
          method: "POST",
          headers: this.#ownHeaders ? [...headers, ...ownHeaders] : [...headers],
          body,
          reset: !this.#keepsAlive
        },
        exchange
      )
      if (exchange.controller === undefined) exchange.connecting = connecting
    } catch (error) {
      if (!exchange.over) exchange.onResponseError(null, error instanceof Error ? error : abandoned)
    }
    return exchange
  }

  #follow(exchange: Exchange): void {
    const { redirects, redirectsTo, target } = this.#request
    const next =
      this.#redirects.length < redirects
        ? redirected(exchange.target, exchange.headers.location, [target.origin, ...redirectsTo])
        : `more than ${redirects} ${redirects === 1 ? "redirect" : "redirects"}`
    if (typeof next === "string") {
      this.#settle(exchange, failure("redirect", `${next} (status ${exchange.status})`))
      return
    }
    if (next.origin !== exchange.target.origin) this.#ownHeaders = false
    this.#redirects.push({ status: exchange.status, to: next.shown })
    this.#afterParsing.run(() => {
      if (!this.#over) this.#send(next)
    })
  }

  #settle(exchange: Exchange, error?: Failure): void {
    if (this.#over) return
    this.#over = true
    timers.cancel(this.#timer)
    const hasAnswer = exchange.status !== 0
    const result: AttemptResult = {
      status: hasAnswer ? exchange.status : undefined,
      error,
      response: hasAnswer ? exchange.response : undefined,
      redirects: this.#redirects.length === 0 ? undefined : this.#redirects,
      retryAfter: headerOf(exchange.headers, "retry-after"),
      durationMs: tenths(timers.monotonicMs() - this.#startedAt),
      connectMs: tenthsOf(this.#connectMs),
      firstByteMs: tenthsOf(this.#firstByteMs)
    }
    this.#afterParsing.run(() => this.#done(result))
  }
}

const onTimeout = (attempt: HttpAttempt): void => attempt.timedOut()

/**
 * Steps that run after undici has finished with the current answers and taken their connections
 * back, which it does in an immediate for each answer. Inside a handler, a step that sends another
 * request would run inside undici's parser, which is not reentrant. It would also find the
 * connection in use, and open another, and so would the steps of other answers of the same turn: all
 * run after the last of these immediates.
 */
export class AfterParsing {
  #steps: Array<() => void> = []
  #expected = 0

  run(step: () => void): void {
    this.#steps.push(step)
    this.#expected++
    queueMicrotask(() => timers.immediate(this.#runAll))
  }

  readonly #runAll = (): void => {
    this.#expected--
    if (this.#expected > 0) return
    const steps = this.#steps
    this.#steps = []
    for (const step of steps) step()
  }
}

/** An attempt in flight. */
export interface Running {
  /** Cancels it without an outcome. Its connection is closed, also while it is made. */
  readonly interrupt: () => void
  /**
   * Ends it without an answer, unless it has one: its outcome is an error of class `interrupted`.
   *
   * @param why one short line.
   */
  readonly end: (why: string) => void
}

/**
 * Makes one attempt: POSTs the request, follows redirects, and calls `done` once with the result.
 *
 * The result holds any error, and the status if it arrived before the error. A result without error
 * has a complete answer, or one cut at 64 KiB. Durations are of the monotonic clock: they measure
 * I/O, so a test's clock does not affect them. Plain callbacks, because every delivery takes this
 * path.
 *
 * @param keepsAlive false where the connection is closed after the answer. (Default: true)
 * @param afterParsing shared by all attempts of one worker. (Default: its own)
 */
export const startAttempt = (
  agent: Agent,
  request: AttemptRequest,
  done: (result: AttemptResult) => void,
  keepsAlive = true,
  afterParsing = new AfterParsing()
): Running => new HttpAttempt(agent, request, done, keepsAlive, afterParsing)
