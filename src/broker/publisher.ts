import type { Msg } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import type { Timer } from "../time/timers.ts"
import { timers } from "../time/timers.ts"
import { Outbound } from "./outbound.ts"
import { SlotMap } from "./slot-map.ts"
import type { Unanswered } from "./unanswered.ts"
import type { Life, Wire } from "./wire.ts"

/** Headers of a message, in order. Names and values must hold no line breaks. */
export type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

/** Where a message is stored, and whether it was stored before under its `Nats-Msg-Id`. */
export interface PubAck {
  readonly stream: string
  readonly seq: number
  readonly duplicate: boolean
}

/** The broker refused to store a message, or did not answer in time (it may have stored it). */
export class PublishError extends Schema.TaggedError<PublishError>()("PublishError", {
  subject: Schema.String,
  reason: Schema.Literals(["timeout", "no-stream", "rejected", "closed"]),
  /** JetStream's err_code, or 0. */
  code: Schema.Number,
  detail: Schema.String
}) {
  override get message() {
    return `could not store on ${this.subject}: ${this.detail}`
  }
}

type Settle = (result: PubAck | PublishError) => void

/** A publish in flight. Times are from timers.monotonicMs. */
interface PendingPublication {
  readonly subject: string
  readonly headers: HeaderList
  /** The body, if it is text and short enough to be kept. */
  body: string | undefined
  readonly sentAt: number
  /** Number of the connection that it was sent on. */
  readonly sentOn: number
  /** The caller's callback; undefined once the publish has timed out. */
  settle: Settle | undefined
  /** When the publish times out. */
  deadline: number
  /** True if it has taken longer than the configured time-out. */
  isSlow: boolean
}

/** A publish that has timed out, kept for its late answer and its next attempt. */
interface Late {
  readonly token: number
  readonly publication: PendingPublication
  /** Token of the next attempt, if one was sent. */
  again: number | undefined
  /** The late acknowledgement, if it has arrived. */
  ack: PubAck | undefined
}

/** The time-out grows up to this multiple of the configured one. */
const maxTimeoutFactor = 6
/** A timed out publish is remembered for this multiple of the configured time-out. */
const rememberedFactor = 12
/** Maximum number of remembered publishes, and of characters of each body. */
const maxLatePublications = 4_096
const maxLateBodyLength = 4_096
/** The time-out is this multiple of the recent slowest acknowledgement. */
const slowestFactor = 2

/** Encodes headers for the wire. */
const encode = (list: HeaderList): string => {
  let text = "NATS/1.0\r\n"
  for (const [name, value] of list) {
    // A line feed would end this header and begin another.
    if (value.includes("\n")) throw new Error(`the value of ${name} has more than one line`)
    text += `${name}: ${value}\r\n`
  }
  return `${text}\r\n`
}

interface AckBody {
  readonly stream?: string
  readonly seq?: number
  readonly duplicate?: boolean
  readonly error?: { readonly err_code?: number; readonly description?: string }
}

/**
 * Turns the acknowledgement of one publish into that of another under the same id, as the broker
 * would answer: unless the body is known to be the same, it is a duplicate.
 */
const answerTo = (ack: PubAck, one: string | undefined, other: unknown): PubAck =>
  one !== undefined && one === other ? ack : { ...ack, duplicate: true }

/**
 * Returns a key that is equal for attempts to publish the same message; undefined for a message
 * without id.
 */
const keyOf = (subject: string, headers: HeaderList): string | undefined => {
  for (const [name, value] of headers) if (name === "Nats-Msg-Id") return `${value} ${subject}`
  return undefined
}

const closedError = (subject: string) =>
  new PublishError({ subject, reason: "closed", code: 0, detail: "the connection is closed" })

/** Any subscriber of the subject may answer, with anything. */
const ackBody = (message: Msg): AckBody => {
  try {
    return message.json<AckBody | null>() ?? {}
  } catch {
    return {}
  }
}

/**
 * Publishes to streams and awaits their acknowledgements, all on one reply inbox. This costs 2–3 µs
 * a message; a request of its own for each costs 15. The callers bound what is in flight: each
 * awaits its acknowledgement.
 *
 * A broker that is slower than the time-out still stores what it is sent. So that such a broker
 * counts as slow and not as failed, late acknowledgements are used:
 * - While acknowledgements are slow, the time-out grows with them, up to {@link maxTimeoutFactor}
 *   times the configured one.
 * - A publish that repeats the id of an unanswered one first waits for that answer. It is sent
 *   again only after twice the time-out: more of the same makes a slow broker slower. If the
 *   connection of the earlier publish is gone, no answer comes, and it is sent at once.
 * - If the answer has arrived in between, it is used. Unless the body is known to be the same, the
 *   publish counts as a duplicate.
 *
 * None of this delays a message: it is sent within the configured time-out or not at all.
 */
export class Publisher {
  readonly outbound: Outbound
  readonly unanswered: Unanswered
  readonly #inbox: string
  readonly #unsubscribe: () => void
  readonly #outstanding = new SlotMap<PendingPublication>()
  readonly #timeoutMs: number
  readonly #sweeper: Timer
  /** Timed out publishes by `keyOf`, or by token if they have no id. */
  readonly #late = new Map<string, Late>()
  /** The current time-out, ms. */
  #currentTimeoutMs: number
  /** The recent slowest acknowledgement, ms, and when the last slow one arrived. */
  #slowest = 0
  #slowAt = Number.NEGATIVE_INFINITY
  #epoch = 0
  #closed = false

  constructor(wire: Wire, unanswered: Unanswered, timeoutMs = 5_000) {
    this.outbound = new Outbound(wire)
    this.unanswered = unanswered
    this.#timeoutMs = timeoutMs
    this.#currentTimeoutMs = timeoutMs
    const inbox = wire.inbox()
    this.#inbox = `${inbox}.`
    this.#unsubscribe = wire.subscribe(`${inbox}.*`, (message) => this.#settle(message))
    this.#sweeper = timers.every(Math.min(500, timeoutMs / 2), () => this.#sweep())
    this.#sweeper.unref()
  }

  /**
   * Stores one message. After a time-out it may be stored nonetheless: give it a `Nats-Msg-Id` and
   * publish it again.
   *
   * @param life the only connection that the message may be sent on. (Default: any)
   */
  publish(
    subject: string,
    body: Uint8Array | string,
    headers: HeaderList,
    life?: Life
  ): Effect.Effect<PubAck, PublishError> {
    return Effect.callback((resume) => {
      const settle: Settle = (result) =>
        resume(result instanceof PublishError ? Effect.fail(result) : Effect.succeed(result))
      this.send(subject, body, headers, settle, life)
    })
  }

  /** `publish` for callers without a fiber: `settle` is called once. */
  send(
    subject: string,
    body: Uint8Array | string,
    headers: HeaderList,
    settle: (result: PubAck | PublishError) => void,
    life?: Life
  ): void {
    if (this.#closed) {
      settle(closedError(subject))
      return
    }
    const sentAt = timers.monotonicMs()
    const late = this.#late.size === 0 ? undefined : this.#lateAt(subject, headers)
    if (late !== undefined && this.#awaitEarlier(late, body, sentAt, settle)) return
    const token = this.#outstanding.add({
      subject,
      headers,
      body: typeof body === "string" ? body : undefined,
      sentAt,
      sentOn: this.#epoch,
      settle,
      deadline: sentAt + this.#currentTimeoutMs,
      isSlow: false
    })
    if (late !== undefined) late.again = token
    try {
      if (this.outbound.isClosed) throw new Error("the connection is closed")
      const until = sentAt + this.#timeoutMs
      this.outbound.publish(subject, this.#inbox + token, encode(headers), body, until, life)
    } catch (error) {
      this.#outstanding.take(token)
      const reason = this.outbound.isClosed ? "closed" : "rejected"
      const detail = error instanceof Error ? error.message : String(error)
      settle(new PublishError({ subject, reason, code: 0, detail }))
    }
  }

  /**
   * Called when there is a connection again. Publishes that have waited for too long fail before
   * the broker receives anything: otherwise callers that count failures would see them after the
   * recovery.
   */
  reconnected(): void {
    this.#epoch++
    this.unanswered.clear()
    this.#forget(() => true)
    this.#expire((publication) => this.#until(publication))
    this.outbound.flush()
  }

  /** Stops listening. Publishes in flight fail with the reason `closed`. */
  close(): void {
    this.outbound.flush()
    this.#closed = true
    timers.cancel(this.#sweeper)
    this.#unsubscribe()
    this.#forget(() => true)
    for (const [token, { settle, subject }] of this.#outstanding.entries()) {
      this.#outstanding.take(token)
      settle?.(closedError(subject))
    }
  }

  #settle(message: Msg): void {
    const token = Number(message.subject.slice(this.#inbox.length))
    const publication = this.#outstanding.take(token)
    if (publication === undefined) return
    if (publication.isSlow) this.#wasSlow(timers.monotonicMs() - publication.sentAt)
    const result = resultOf(message, publication.subject)
    // A broker that can store nothing more still refuses writes and names duplicates, from memory.
    if (!(result instanceof PublishError) && !result.duplicate)
      this.unanswered.stored(publication.subject)
    if (publication.settle === undefined) this.#cameLate(token, publication, result)
    else publication.settle(result)
  }

  #lateAt(subject: string, headers: HeaderList): Late | undefined {
    const key = keyOf(subject, headers)
    return key === undefined ? undefined : this.#late.get(key)
  }

  /** Lets a repeated publish wait for the answer to the earlier one, if that is still possible. */
  #awaitEarlier(
    { ack, again, publication }: Late,
    body: Uint8Array | string,
    now: number,
    settle: Settle
  ): boolean {
    if (ack !== undefined) {
      this.#drop(publication)
      settle(answerTo(ack, publication.body, body))
      return true
    }
    const until = publication.sentAt + slowestFactor * this.#currentTimeoutMs
    if (again !== undefined || until <= now) return false
    this.#drop(publication)
    publication.settle = (result) =>
      settle(result instanceof PublishError ? result : answerTo(result, publication.body, body))
    publication.deadline = Math.min(now + this.#currentTimeoutMs, until)
    return true
  }

  #drop({ headers, subject }: PendingPublication): void {
    const key = keyOf(subject, headers)
    if (key !== undefined) this.#late.delete(key)
  }

  /** Handles a late answer: the next attempt of the same publish may still be waiting. */
  #cameLate(
    token: number,
    { headers, subject }: PendingPublication,
    result: PubAck | PublishError
  ): void {
    this.#late.delete(`${token}`)
    const late = this.#lateAt(subject, headers)
    if (late?.token !== token) return
    if (result instanceof PublishError) {
      this.#drop(late.publication)
      return
    }
    const again = late.again === undefined ? undefined : this.#outstanding.take(late.again)
    late.ack = result
    if (again?.settle === undefined) return
    this.#drop(late.publication)
    again.settle(answerTo(result, late.publication.body, again.body))
  }

  #wasSlow(took: number): void {
    this.#slowAt = timers.monotonicMs()
    this.#slowest = Math.max(took, (7 * this.#slowest + took) / 8)
    this.#currentTimeoutMs = Math.min(
      maxTimeoutFactor * this.#timeoutMs,
      slowestFactor * this.#slowest
    )
  }

  /** When an unsent message expires. */
  #until({ sentAt }: PendingPublication): number {
    return sentAt + this.#timeoutMs
  }

  #sweep(): void {
    const now = timers.monotonicMs()
    const longAgo = now - rememberedFactor * this.#timeoutMs
    if (this.#currentTimeoutMs > this.#timeoutMs && this.#slowAt < longAgo) {
      this.#currentTimeoutMs = this.#timeoutMs
      this.#slowest = 0
    }
    this.#forget(({ sentAt }) => sentAt < longAgo)
    this.#expire(({ deadline }) => deadline)
  }

  #expire(end: (publication: PendingPublication) => number): void {
    const now = timers.monotonicMs()
    for (const [token, publication] of this.#outstanding.entries()) {
      const { settle, subject } = publication
      if (settle === undefined) continue
      publication.isSlow ||= this.#until(publication) <= now
      if (end(publication) > now) continue
      publication.settle = undefined
      const isConnected = publication.sentOn === this.#epoch && this.outbound.isConnected
      if (isConnected) this.unanswered.timedOut(subject, publication.sentAt, now)
      if (!isConnected || !this.#keep(token, publication)) this.#outstanding.take(token)
      const ms = Math.round(now - publication.sentAt)
      const detail = `no acknowledgement within ${ms} ms; \`petrel status\` says whether the broker's disk is full, if that lasts`
      settle(new PublishError({ subject, reason: "timeout", code: 0, detail }))
    }
  }

  /** Remembers a timed out publish, whose answer may still arrive. */
  #keep(token: number, publication: PendingPublication): boolean {
    if (this.#late.size >= maxLatePublications) return false
    const key = keyOf(publication.subject, publication.headers) ?? `${token}`
    if ((publication.body?.length ?? 0) > maxLateBodyLength) publication.body = undefined
    const before = this.#late.get(key)
    if (before?.ack !== undefined) return false
    // Keep the earlier one too: the time that its answer takes still counts.
    if (before !== undefined) this.#late.set(`${before.token}`, before)
    this.#late.set(key, { token, publication, again: undefined, ack: undefined })
    return true
  }

  #forget(isOver: (publication: PendingPublication) => boolean): void {
    for (const [key, { publication, token }] of this.#late) {
      if (!isOver(publication)) continue
      this.#late.delete(key)
      this.#outstanding.take(token)
    }
  }
}

const resultOf = (message: Msg, subject: string): PubAck | PublishError => {
  if (message.headers?.code === 503) {
    const detail = "no stream takes this subject; has `petrel init` been run?"
    return new PublishError({ subject, reason: "no-stream", code: 503, detail })
  }
  const body = ackBody(message)
  if (body.error !== undefined || body.stream === undefined || body.seq === undefined) {
    const detail = body.error?.description ?? "the answer is not an acknowledgement"
    const code = body.error?.err_code ?? 0
    return new PublishError({ subject, reason: "rejected", code, detail })
  }
  return { stream: body.stream, seq: body.seq, duplicate: body.duplicate === true }
}
