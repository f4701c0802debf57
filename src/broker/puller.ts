import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"
import { createInbox } from "@nats-io/transport-node"
import type { GetHeader } from "../domain/event.ts"
import { headersOf } from "./headers.ts"
import type { Outbound } from "./outbound.ts"
import { StreamMessage } from "./stream-message.ts"

/** What a request for messages asks for, at most. */
export interface Wanted {
  readonly messages: number
  /** As the broker counts them: subjects and headers included. Without it, of any size. */
  readonly bytes?: number
}

/** Gets a message with its headers at once. Must not throw. */
export type Take = (message: StreamMessage, header: GetHeader) => void

/** How a request came to its end: there may be more, the next message is larger than it asked for, or it failed. */
export type Ended = "done" | "too-large" | { readonly message: string }

/**
 * Takes messages from a consumer by requests, one at a time, all on one inbox. The client's own
 * `fetch` cannot be limited by number and by bytes at once, and subscribes anew for each request.
 */
export class Puller {
  readonly #connection: NatsConnection
  readonly #outbound: Outbound
  readonly #subject: string
  readonly #take: Take
  readonly #expires: number
  #inbox: Inbox | undefined

  /**
   * @param outbound through which messages are asked for and answered.
   * @param expires how long one request stays open at the broker, ms.
   */
  constructor(
    connection: NatsConnection,
    outbound: Outbound,
    of: { readonly stream: string; readonly consumer: string },
    take: Take,
    expires: number
  ) {
    this.#connection = connection
    this.#outbound = outbound
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${of.stream}.${of.consumer}`
    this.#take = take
    this.#expires = expires
  }

  /** Asks for messages; `ended` is called once, unless the request is abandoned. */
  request(wanted: Wanted, ended: (how: Ended) => void): void {
    this.#inbox ??= new Inbox(this.#connection, this.#outbound, this.#take, this.#expires)
    const { bytes, messages } = wanted
    const request = {
      batch: messages,
      expires: this.#expires * 1_000_000,
      // A share of a worker's room may not be whole, and the broker refuses a fraction.
      ...(bytes === undefined ? {} : { max_bytes: Math.floor(bytes) })
    }
    const reply = this.#inbox.open(messages, ended)
    const until = performance.now() + this.#expires
    this.#outbound.publish(this.#subject, reply, "", JSON.stringify(request), until)
  }

  /**
   * Waits no longer for the end of a request, which the broker may still hold: what comes of it
   * goes back.
   */
  abandon(): void {
    this.#inbox?.abandon()
    this.#inbox = undefined
  }

  close(): void {
    this.#inbox?.close()
    this.#inbox = undefined
  }
}

/** Where the messages of requests arrive, and the words with which the broker ends one. */
class Inbox {
  readonly #subject: string
  readonly #subscription: Subscription
  readonly #expires: number
  #number = 0
  #missing = 0
  #ended: ((how: Ended) => void) | undefined
  #abandoned = false

  constructor(connection: NatsConnection, outbound: Outbound, take: Take, expires: number) {
    this.#expires = expires
    this.#subject = createInbox()
    this.#subscription = connection.subscribe(`${this.#subject}.*`, {
      callback: (error, message) => {
        if (error !== null) return
        if (!message.reply?.startsWith("$JS.ACK.")) return this.#told(message)
        const taken = new StreamMessage(message, outbound)
        // At once it would come here again.
        if (this.#abandoned) return taken.nak(expires)
        take(taken, headersOf(message))
        if (--this.#missing === 0) this.#end("done")
      }
    })
  }

  /** Begins a request, and says where its messages are to be sent. */
  open(messages: number, ended: (how: Ended) => void): string {
    this.#missing = messages
    this.#ended = ended
    return `${this.#subject}.${++this.#number}`
  }

  abandon(): void {
    this.#abandoned = true
    this.#ended = undefined
    setTimeout(() => this.close(), 2 * this.#expires).unref()
  }

  close(): void {
    this.#subscription.unsubscribe()
  }

  #told({ headers, subject }: Msg): void {
    const isCurrent = subject === `${this.#subject}.${this.#number}`
    if (isCurrent && headers !== undefined && headers.code !== idle)
      this.#end(meaning(headers.code, headers.description))
  }

  #end(how: Ended): void {
    const ended = this.#ended
    this.#ended = undefined
    ended?.(how)
  }
}

const idle = 100
/** Nothing was there, the time is over, or the consumer's leader goes elsewhere. */
const usual = new Set(["no messages", "request timeout", "batch completed", "leadership change"])

const meaning = (code: number, description: string): Ended => {
  const words = description.toLowerCase()
  if (words.startsWith("message size exceeds")) return "too-large"
  if (usual.has(words) || words === "server shutdown") return "done"
  const message =
    code === 503 ? "the broker has no such consumer, or it has no leader now" : description
  return { message }
}
