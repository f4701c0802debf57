import type { Msg } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { Names } from "../domain/names.ts"
import { spanText } from "../text/quantities.ts"
import type { Timer } from "../time/timers.ts"
import { timers } from "../time/timers.ts"
import type { PendingPublication, Settle } from "./late-publications.ts"
import { LatePublications } from "./late-publications.ts"
import { MessageTooLarge, Outbound } from "./outbound.ts"
import type { HeaderList, PubAck } from "./publication.ts"
import { messageTooLarge, PublishError } from "./publication.ts"
import { SlotMap } from "./slot-map.ts"
import { TakeTurns } from "./take-turns.ts"
import type { Unanswered } from "./unanswered.ts"
import type { Life, Wire } from "./wire.ts"

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

/** A publication and its answer, which its caller is told in its turn. */
interface AnsweredPublication {
  readonly subject: string
  readonly settle: Settle
  readonly result: PubAck | PublishError
}

interface AckBody {
  readonly stream?: string
  readonly seq?: number
  readonly duplicate?: boolean
  readonly error?: { readonly err_code?: number; readonly description?: string }
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
 * awaits its acknowledgement. {@link LatePublications} has those that come after the time-out.
 */
export class Publisher {
  readonly outbound: Outbound
  readonly unanswered: Unanswered
  readonly #inbox: string
  readonly #listen: () => () => void
  /** Undefined until something is published: who only receives may not have an inbox. */
  #unsubscribe: (() => void) | undefined
  readonly #outstanding = new SlotMap<PendingPublication>()
  readonly #timeoutMs: number
  readonly #sweeper: Timer
  readonly #late: LatePublications
  readonly #answer: (answered: AnsweredPublication) => void
  #epoch = 0
  #closed = false

  constructor(
    wire: Wire,
    unanswered: Unanswered,
    names: Pick<Names, "streamOf" | "tenantIn">,
    timeoutMs = 5_000
  ) {
    this.outbound = new Outbound(wire)
    this.unanswered = unanswered
    this.#timeoutMs = timeoutMs
    this.#late = new LatePublications(timeoutMs, this.#outstanding)
    const turns = new TakeTurns()
    this.#answer = turns.lines(
      ({ subject }) => names.tenantIn(subject) ?? names.streamOf(subject) ?? "",
      ({ result, settle }) => settle(result)
    )
    const inbox = wire.inbox()
    this.#inbox = `${inbox}.`
    this.#listen = () => wire.subscribe(`${inbox}.*`, (message) => this.#settle(message))
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
    if (!this.outbound.isClosed) this.#unsubscribe ??= this.#listen()
    const sentAt = timers.monotonicMs()
    const late = this.#late.earlier(subject, headers)
    if (late !== undefined && this.#late.awaits(late, body, sentAt, settle)) return
    const token = this.#outstanding.add({
      subject,
      headers,
      body: typeof body === "string" ? body : undefined,
      sentAt,
      sentOn: this.#epoch,
      settle,
      deadline: sentAt + this.#late.timeoutMs,
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
      const code = error instanceof MessageTooLarge ? messageTooLarge : 0
      const detail = error instanceof Error ? error.message : String(error)
      settle(new PublishError({ subject, reason, code, detail }))
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
    this.#late.clear()
    this.#expire((publication) => this.#until(publication))
    this.outbound.flush()
  }

  /** Stops listening. Publishes in flight fail with the reason `closed`. */
  close(): void {
    this.outbound.flush()
    this.#closed = true
    timers.cancel(this.#sweeper)
    this.#unsubscribe?.()
    this.#late.clear()
    for (const [token, { settle, subject }] of this.#outstanding.entries()) {
      this.#outstanding.take(token)
      settle?.(closedError(subject))
    }
  }

  #settle(message: Msg): void {
    const token = Number(message.subject.slice(this.#inbox.length))
    const publication = this.#outstanding.take(token)
    if (publication === undefined) return
    if (publication.isSlow) this.#late.wasSlow(timers.monotonicMs() - publication.sentAt)
    const { headers, settle, subject } = publication
    const result = resultOf(message, subject)
    // A broker that can store nothing more still refuses writes and names duplicates, from memory.
    if (!(result instanceof PublishError)) {
      if (!result.duplicate) this.unanswered.stored(subject, publication.sentAt, result.stream)
      else {
        const late = this.#late.earlier(subject, headers)
        if (late?.again === token) this.unanswered.wasStored(subject, late.publication.sentAt)
      }
    }
    if (settle === undefined) this.#late.answered(token, publication, result)
    else this.#answer({ subject, settle, result })
  }

  /** When an unsent message expires. */
  #until({ sentAt }: PendingPublication): number {
    return sentAt + this.#timeoutMs
  }

  #sweep(): void {
    this.#late.sweep(timers.monotonicMs())
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
      if (!isConnected || !this.#late.keep(token, publication)) this.#outstanding.take(token)
      const ms = Math.round(now - publication.sentAt)
      const detail = `no acknowledgement within ${spanText(ms)}; \`petrel status\` says whether the broker's disk is full, if that lasts`
      settle(new PublishError({ subject, reason: "timeout", code: 0, detail }))
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
