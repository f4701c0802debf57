import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"
import { createInbox } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import { type Life, Outbound } from "./outbound.ts"
import { SlotMap } from "./slot-map.ts"

/** Headers of a message, in order. Names and values must hold no line breaks. */
export type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

/** Where a message was stored, and whether it was there already under its `Nats-Msg-Id`. */
export interface PubAck {
  readonly stream: string
  readonly seq: number
  readonly duplicate: boolean
}

/** The broker refused to store a message, or did not answer in time (it may have stored it). */
export class PublishError extends Schema.TaggedError<PublishError>()("PublishError", {
  subject: Schema.String,
  reason: Schema.Literals(["timeout", "no-stream", "rejected", "closed"]),
  /** JetStream's err_code, 0 where there is none. */
  code: Schema.Number,
  detail: Schema.String
}) {
  override get message() {
    return `could not store on ${this.subject}: ${this.detail}`
  }
}

type Settle = (result: PubAck | PublishError) => void

/** Times by performance.now. */
interface Publication {
  readonly subject: string
  readonly headers: HeaderList
  /** Where it is text, and short enough to be kept. */
  body: string | undefined
  readonly sentAt: number
  /** On which of the connections, counted. */
  readonly sentOn: number
  /** Who waits; nobody where it has failed as too late. */
  settle: Settle | undefined
  /** When it fails. */
  deadline: number
  /** It has taken longer than was configured. */
  isSlow: boolean
}

/** What has failed as too late, under what it is published again. */
interface Late {
  readonly token: number
  readonly publication: Publication
  /** What was sent since in its place. */
  again: number | undefined
  /** Come since. */
  ack: PubAck | undefined
}

/** How many times the configured time-out it may be waited for an acknowledgement at most. */
const maxTimeoutFactor = 6
/** How many times the configured time-out what has failed as too late is remembered. */
const rememberedFactor = 12
/** How many of these, and characters of each of their bodies. */
const maxLatePublications = 4_096
const maxLateBodyLength = 4_096
/** By how much an acknowledgement may be slower than the slowest of late. */
const slowestFactor = 2

/** Headers as they are sent. */
const encode = (list: HeaderList): string => {
  let text = "NATS/1.0\r\n"
  for (const [name, value] of list) {
    // It would end this header and begin another.
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

/** An answer to one publication, as one to another under the same id: as the broker would give it. */
const answerTo = (ack: PubAck, one: string | undefined, other: unknown): PubAck =>
  one !== undefined && one === other ? ack : { ...ack, duplicate: true }

/** The same where it is the same message that is published; none where it has no id. */
const keyOf = (subject: string, headers: HeaderList): string | undefined => {
  for (const [name, value] of headers) if (name === "Nats-Msg-Id") return `${value} ${subject}`
  return undefined
}

const closedError = (subject: string) =>
  new PublishError({ subject, reason: "closed", code: 0, detail: "the connection is closed" })

/** Whoever has the subject may answer, with anything. */
const ackBody = (message: Msg): AckBody => {
  try {
    return message.json<AckBody | null>() ?? {}
  } catch {
    return {}
  }
}

/**
 * Publishes to streams and awaits their acknowledgements, all on one reply inbox:
 * 2–3 µs a message where a request of its own each costs 15.
 * What is outstanding is bounded by the callers: each awaits its acknowledgement.
 *
 * A broker that is slower than the time-out stores what it is sent nonetheless. So that it is slow
 * then, and not out of use, what was stored is known however late that is told:
 * - While acknowledgements are slow, it is waited for as long as they take, up to {@link maxTimeoutFactor}
 *   time-outs.
 * - What is published again under the id of what has no answer yet waits on for that answer, and is
 *   sent again only after twice that time: more of the same makes a slow broker slower. Of what was
 *   sent on a connection that is gone no answer comes.
 * - Where the answer has come in between, it is the answer; what is not the very same is a duplicate.
 *
 * When a message is sent depends on none of this: not later than the configured time-out.
 */
export class Publisher {
  /** Through which it publishes. */
  readonly outbound: Outbound
  readonly #inbox: string
  readonly #subscription: Subscription
  readonly #outstanding = new SlotMap<Publication>()
  readonly #timeoutMs: number
  readonly #sweeper: NodeJS.Timeout
  /** By their ids; a word of its own for each that has none. */
  readonly #late = new Map<string, Late>()
  /** How long an acknowledgement is waited for now, ms. */
  #currentTimeoutMs: number
  /** Of what was slow: the most it took lately, ms, and when the last one came. */
  #slowest = 0
  #slowAt = Number.NEGATIVE_INFINITY
  #epoch = 0
  #closed = false

  constructor(connection: NatsConnection, timeoutMs = 5_000) {
    this.outbound = new Outbound(connection)
    this.#timeoutMs = timeoutMs
    this.#currentTimeoutMs = timeoutMs
    const inbox = createInbox()
    this.#inbox = `${inbox}.`
    this.#subscription = connection.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#settle(message)
      }
    })
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(500, timeoutMs / 2))
    this.#sweeper.unref()
  }

  /**
   * Stores one message. A time-out does not mean that it was not stored: give it a
   * `Nats-Msg-Id` and publish again.
   *
   * @param life the only connection that it is meant for. (Default: any)
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
    const sentAt = performance.now()
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
   * To be called when there is a connection again. What has waited for too long fails before the
   * broker takes anything: else whoever counts failures would hear of them after its recovery.
   */
  reconnected(): void {
    this.#epoch++
    this.#forget(() => true)
    this.#expire((publication) => this.#until(publication))
    this.outbound.flush()
  }

  /** Stops listening. What is outstanding fails as closed. */
  close(): void {
    this.outbound.flush()
    this.#closed = true
    clearInterval(this.#sweeper)
    this.#subscription.unsubscribe()
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
    if (publication.isSlow) this.#wasSlow(performance.now() - publication.sentAt)
    const result = resultOf(message, publication.subject)
    if (publication.settle === undefined) this.#cameLate(token, publication, result)
    else publication.settle(result)
  }

  #lateAt(subject: string, headers: HeaderList): Late | undefined {
    const key = keyOf(subject, headers)
    return key === undefined ? undefined : this.#late.get(key)
  }

  /** Lets what is published again wait for the answer to what was sent before, if it may. */
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

  #drop({ headers, subject }: Publication): void {
    const key = keyOf(subject, headers)
    if (key !== undefined) this.#late.delete(key)
  }

  /** Nobody waits for this answer any more, but perhaps for that to what was sent in its place. */
  #cameLate(token: number, { headers, subject }: Publication, result: PubAck | PublishError): void {
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
    this.#slowAt = performance.now()
    this.#slowest = Math.max(took, (7 * this.#slowest + took) / 8)
    this.#currentTimeoutMs = Math.min(
      maxTimeoutFactor * this.#timeoutMs,
      slowestFactor * this.#slowest
    )
  }

  /** When a message is not sent any more. */
  #until({ sentAt }: Publication): number {
    return sentAt + this.#timeoutMs
  }

  #sweep(): void {
    const now = performance.now()
    const longAgo = now - rememberedFactor * this.#timeoutMs
    if (this.#currentTimeoutMs > this.#timeoutMs && this.#slowAt < longAgo) {
      this.#currentTimeoutMs = this.#timeoutMs
      this.#slowest = 0
    }
    this.#forget(({ sentAt }) => sentAt < longAgo)
    this.#expire(({ deadline }) => deadline)
  }

  #expire(end: (publication: Publication) => number): void {
    const now = performance.now()
    for (const [token, publication] of this.#outstanding.entries()) {
      const { settle, subject } = publication
      if (settle === undefined) continue
      publication.isSlow ||= this.#until(publication) <= now
      if (end(publication) > now) continue
      publication.settle = undefined
      if (!this.#keep(token, publication)) this.#outstanding.take(token)
      const ms = Math.round(now - publication.sentAt)
      const detail = `no acknowledgement within ${ms} ms`
      settle(new PublishError({ subject, reason: "timeout", code: 0, detail }))
    }
  }

  /** Remembers what has failed as too late, if it may still be answered. */
  #keep(token: number, publication: Publication): boolean {
    if (publication.sentOn !== this.#epoch || !this.outbound.isConnected) return false
    if (this.#late.size >= maxLatePublications) return false
    const key = keyOf(publication.subject, publication.headers) ?? `${token}`
    if ((publication.body?.length ?? 0) > maxLateBodyLength) publication.body = undefined
    const before = this.#late.get(key)
    if (before?.ack !== undefined) return false
    // How long that takes is still worth knowing.
    if (before !== undefined) this.#late.set(`${before.token}`, before)
    this.#late.set(key, { token, publication, again: undefined, ack: undefined })
    return true
  }

  #forget(isOver: (publication: Publication) => boolean): void {
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
