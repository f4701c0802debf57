import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"
import { createInbox } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import { Outbound } from "./outbound.ts"
import { Slots } from "./slots.ts"

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

interface Publication {
  readonly subject: string
  readonly settle: (result: PubAck | PublishError) => void
  /** By performance.now. */
  readonly deadline: number
}

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
 */
export class Publisher {
  /** Through which it publishes. */
  readonly outbound: Outbound
  readonly #inbox: string
  readonly #subscription: Subscription
  readonly #outstanding = new Slots<Publication>()
  readonly #timeoutMs: number
  readonly #sweeper: NodeJS.Timeout
  #closed = false

  constructor(connection: NatsConnection, timeoutMs = 5_000) {
    this.outbound = new Outbound(connection)
    this.#timeoutMs = timeoutMs
    const inbox = createInbox()
    this.#inbox = `${inbox}.`
    this.#subscription = connection.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#settle(message)
      }
    })
    this.#sweeper = setInterval(() => this.#expire(), Math.min(500, timeoutMs / 2))
    this.#sweeper.unref()
  }

  /**
   * Stores one message. A time-out does not mean that it was not stored: give it a
   * `Nats-Msg-Id` and publish again.
   */
  publish(
    subject: string,
    body: Uint8Array | string,
    headers: HeaderList
  ): Effect.Effect<PubAck, PublishError> {
    return Effect.callback((resume) => {
      this.send(subject, body, headers, (result) =>
        resume(result instanceof PublishError ? Effect.fail(result) : Effect.succeed(result))
      )
    })
  }

  /** `publish` for callers without a fiber: `settle` is called once. */
  send(
    subject: string,
    body: Uint8Array | string,
    headers: HeaderList,
    settle: (result: PubAck | PublishError) => void
  ): void {
    if (this.#closed) {
      settle(closedError(subject))
      return
    }
    const deadline = performance.now() + this.#timeoutMs
    const token = this.#outstanding.add({ subject, settle, deadline })
    try {
      if (this.outbound.isClosed) throw new Error("the connection is closed")
      this.outbound.publish(subject, this.#inbox + token, encode(headers), body, deadline)
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
    this.#expire()
    this.outbound.flush()
  }

  /** Stops listening. What is outstanding fails as closed. */
  close(): void {
    this.outbound.flush()
    this.#closed = true
    clearInterval(this.#sweeper)
    this.#subscription.unsubscribe()
    for (const [token, { settle, subject }] of this.#outstanding.entries()) {
      this.#outstanding.take(token)
      settle(closedError(subject))
    }
  }

  #settle(message: Msg): void {
    const token = Number(message.subject.slice(this.#inbox.length))
    const waiting = this.#outstanding.take(token)
    if (waiting === undefined) return
    const { subject, settle } = waiting
    if (message.headers?.code === 503) {
      const detail = "no stream takes this subject; has `petrel init` been run?"
      settle(new PublishError({ subject, reason: "no-stream", code: 503, detail }))
      return
    }
    const body = ackBody(message)
    if (body.error !== undefined || body.stream === undefined || body.seq === undefined) {
      const detail = body.error?.description ?? "the answer is not an acknowledgement"
      const code = body.error?.err_code ?? 0
      settle(new PublishError({ subject, reason: "rejected", code, detail }))
      return
    }
    settle({ stream: body.stream, seq: body.seq, duplicate: body.duplicate === true })
  }

  #expire(): void {
    const now = performance.now()
    for (const [token, { subject, deadline, settle }] of this.#outstanding.entries()) {
      if (deadline > now) continue
      this.#outstanding.take(token)
      const detail = `no acknowledgement within ${this.#timeoutMs} ms`
      settle(new PublishError({ subject, reason: "timeout", code: 0, detail }))
    }
  }
}
