import type { Msg } from "@nats-io/transport-node"
import type { GetHeader } from "../domain/header-names.ts"
import { timers } from "../time/timers.ts"
import { headersOf } from "./headers.ts"
import type { Outbound } from "./outbound.ts"
import { StreamMessage } from "./stream-message.ts"
import type { TakeLine, TakeTurns } from "./take-turns.ts"
import type { Wire } from "./wire.ts"

/** Limits of a request for messages. */
export interface PullDemand {
  readonly messages: number
  /** Size as the broker counts it, subjects and headers included. Undefined for no limit. */
  readonly bytes?: number
}

/** Receives each message with its headers when it arrives. Must not throw. */
export type Take = (message: StreamMessage, header: GetHeader) => void

/** What the broker answers instead of messages. `isMissing`: perhaps there is no such consumer. */
export interface PullError {
  readonly message: string
  readonly isMissing: boolean
}

/** How a request ended: normally, because the next message is larger than its limit, or with an error. */
export type PullEnd = "done" | "too-large" | PullError

/**
 * Pulls messages from a consumer, one request at a time, all on one inbox. The client's own `fetch`
 * cannot limit number and bytes at once, and makes a subscription for each request.
 */
export class Puller {
  readonly #wire: Wire
  readonly #outbound: Outbound
  readonly #turns: TakeTurns
  readonly #subject: string
  readonly #take: Take
  readonly #expires: number
  #inbox: Inbox | undefined
  #sawHeadersOnly = false
  #takesHeadersOnly = false

  /**
   * @param outbound sends requests and acknowledgements.
   * @param turns of all of its kind that is pulled through the connection.
   * @param expires how long one request stays open at the broker, ms.
   */
  constructor(
    wire: Wire,
    outbound: Outbound,
    turns: TakeTurns,
    of: { readonly stream: string; readonly consumer: string },
    take: Take,
    expires: number
  ) {
    this.#wire = wire
    this.#outbound = outbound
    this.#turns = turns
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${of.stream}.${of.consumer}`
    this.#take = take
    this.#expires = expires
  }

  /**
   * True if the last request returned messages that look as if the consumer had left out their bodies,
   * as one does with `headers_only`. A publisher can make such a message, too.
   */
  get sawHeadersOnly(): boolean {
    return this.#sawHeadersOnly
  }

  /**
   * Requests messages. `ended` is called once, unless the request is abandoned.
   *
   * @param takesHeadersOnly true if the consumer is known to hand out bodies. (Default: false)
   */
  request(wanted: PullDemand, ended: (how: PullEnd) => void, takesHeadersOnly = false): void {
    this.#takesHeadersOnly = takesHeadersOnly
    this.#sawHeadersOnly = false
    this.#inbox ??= new Inbox(
      this.#wire,
      this.#outbound,
      this.#turns,
      this.#takeWhole,
      this.#expires
    )
    const { bytes, messages } = wanted
    const request = {
      batch: messages,
      expires: this.#expires * 1_000_000,
      // A share of a worker's capacity may be fractional, and the broker refuses fractions.
      ...(bytes === undefined ? {} : { max_bytes: Math.floor(bytes) })
    }
    const reply = this.#inbox.open(messages, ended)
    const until = timers.monotonicMs() + this.#expires
    this.#outbound.publish(this.#subject, reply, "", JSON.stringify(request), until)
  }

  /**
   * Stops waiting for the end of a request, which may still be open at the broker. Messages that
   * still arrive are returned by a NAK with a delay.
   *
   * @returns true if no message has come for it.
   */
  abandon(): boolean {
    const isSilent = this.#inbox?.abandon() ?? false
    this.#inbox = undefined
    return isSilent
  }

  close(): void {
    this.#inbox?.close()
    this.#inbox = undefined
  }

  /** Takes a message, or returns it if its body may have been left out. */
  readonly #takeWhole: Take = (message, header) => {
    if (message.data.length > 0 || this.#takesHeadersOnly || header(leftOutBytes) === undefined)
      return this.#take(message, header)
    this.#sawHeadersOnly = true
    message.nak(this.#expires)
  }
}

/** Header that the broker gives a message whose body it leaves out: the body's length. */
const leftOutBytes = "nats-msg-size"

/** The inbox where messages arrive, and the status messages by which the broker ends a request. */
class Inbox {
  readonly #subject: string
  readonly #unsubscribe: () => void
  readonly #outbound: Outbound
  readonly #line: TakeLine<Msg>
  readonly #take: Take
  readonly #expires: number
  #number = 0
  #wanted = 0
  #missing = 0
  #ended: ((how: PullEnd) => void) | undefined
  #abandoned = false

  constructor(wire: Wire, outbound: Outbound, turns: TakeTurns, take: Take, expires: number) {
    this.#outbound = outbound
    this.#take = take
    this.#expires = expires
    this.#subject = wire.inbox()
    this.#line = turns.line((message) => this.#onMessage(message))
    this.#unsubscribe = wire.subscribe(`${this.#subject}.*`, this.#line.take)
  }

  /** Begins a request, and returns the subject that its messages are sent to. */
  open(messages: number, ended: (how: PullEnd) => void): string {
    this.#wanted = messages
    this.#missing = messages
    this.#ended = ended
    return `${this.#subject}.${++this.#number}`
  }

  /** Returns messages that still arrive. True if none has come for the last request. */
  abandon(): boolean {
    this.#abandoned = true
    this.#ended = undefined
    timers.after(2 * this.#expires, () => this.close()).unref()
    return this.#missing === this.#wanted
  }

  close(): void {
    this.#unsubscribe()
    this.#abandoned = true
    for (const message of this.#line.clear()) this.#onMessage(message)
  }

  #onMessage(message: Msg): void {
    if (!message.reply?.startsWith("$JS.ACK.")) {
      this.#onStatus(message)
      return
    }
    const taken = new StreamMessage(message, this.#outbound)
    // Without a delay the message would arrive here again.
    if (this.#abandoned) {
      taken.nak(this.#expires)
      return
    }
    this.#take(taken, headersOf(message))
    if (--this.#missing === 0) this.#end("done")
  }

  #onStatus({ headers, subject }: Msg): void {
    const isCurrent = subject === `${this.#subject}.${this.#number}`
    if (isCurrent && headers !== undefined && headers.code !== idle)
      this.#end(meaning(headers.code, headers.description))
  }

  #end(how: PullEnd): void {
    const ended = this.#ended
    this.#ended = undefined
    ended?.(how)
  }
}

const idle = 100
/** There was no message, the request expired or is complete, or the consumer's leader moves. */
const usual = new Set(["no messages", "request timeout", "batch completed", "leadership change"])

const meaning = (code: number, description: string): PullEnd => {
  const words = description.toLowerCase()
  if (words.startsWith("message size exceeds")) return "too-large"
  if (usual.has(words) || words === "server shutdown") return "done"
  const isMissing = code === 503
  const message = isMissing
    ? "the broker has no such consumer, or it has no leader now"
    : description
  return { message, isMissing }
}
