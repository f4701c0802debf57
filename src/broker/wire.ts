import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { createInbox, NatsConnectionImpl, TimeoutError } from "@nats-io/transport-node"
import { type Timer, timers } from "../time/timers.ts"

/** Pause before a subscription that the broker refused, or ended, is asked for again, ms. */
const resubscribeAfterMs = 5_000

/**
 * Called when the broker does not permit a subscription, and when it does again.
 *
 * @param isPermitted false once, however often it is refused, then true.
 */
export type OnPermission = (subject: string, isPermitted: boolean) => void

/** Identifies one connection, from when it is established until it breaks. */
export type Life = object

/**
 * What publishing and pulling need of a connection. A simulation has one of its own; the messages
 * that it hands over are the client's, parsed from the same bytes.
 */
export interface Wire {
  /** True if nothing can be published any more. */
  readonly isClosed: boolean
  /** True while there is a connection to write to. */
  readonly isConnected: boolean
  /** Identity of the current connection; undefined before the first. */
  readonly life: Life | undefined
  /** Maximum size of a message, headers included, bytes. */
  readonly largest: number
  /** Writes complete protocol lines, in order. */
  write(piece: Uint8Array): void
  /**
   * Receives the messages of a subject, until the returned function is called.
   *
   * @param onPermission called as well where the broker refuses this subscription, or permits it again.
   */
  subscribe(
    subject: string,
    receive: (message: Msg) => void,
    onPermission?: (isPermitted: boolean) => void
  ): () => void
  /** Makes a subject for answers to this connection. */
  inbox(): string
}

/** The wire of the NATS client. */
class ClientWire implements Wire {
  readonly #connection: NatsConnectionImpl
  readonly #onPermission: OnPermission

  constructor(connection: NatsConnectionImpl, onPermission: OnPermission) {
    this.#connection = connection
    this.#onPermission = onPermission
  }

  get isClosed(): boolean {
    return this.#connection.isClosed() || this.#connection.isDraining()
  }

  get isConnected(): boolean {
    return this.#connection.protocol.connected
  }

  /**
   * None from when the connection breaks until the server has taken the next login: its INFO comes
   * before, also to a client whose login it then refuses. Further ones come meanwhile, as when
   * another server of a cluster leaves or joins: they do not begin another connection.
   */
  get life(): Life | undefined {
    const { connected, transport } = this.#connection.protocol
    return connected ? transport : undefined
  }

  get largest(): number {
    return this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY
  }

  write(piece: Uint8Array): void {
    this.#connection.protocol.sendCommand(piece)
  }

  /**
   * The client gives up a subscription that is refused, also one that a reload of the broker's
   * configuration ends, and does not ask for it again when it connects anew.
   */
  subscribe(
    subject: string,
    receive: (message: Msg) => void,
    onPermission: (isPermitted: boolean) => void = () => undefined
  ): () => void {
    const connection = this.#connection
    const permit = (isNow: boolean) => {
      isPermitted = isNow
      this.#onPermission(subject, isNow)
      onPermission(isNow)
    }
    let isPermitted = true
    let refusals = 0
    let later: Timer | undefined
    const open = () =>
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error === null) return receive(message)
          refusals++
          if (isPermitted) permit(false)
          timers.cancel(later)
          later = timers.after(resubscribeAfterMs, openAgain)
          later.unref()
        }
      })
    const openAgain = () => {
      if (this.isClosed) return
      const before = refusals
      subscription = open()
      // A refusal comes before the answer to the flush.
      connection.flush().then(
        () => {
          if (refusals === before) permit(true)
        },
        () => undefined
      )
    }
    let subscription = open()
    return () => {
      timers.cancel(later)
      subscription.unsubscribe()
    }
  }

  inbox(): string {
    return createInbox()
  }
}

/** Returns the client's own connection. Throws for one of another version of the client. */
export const implOf = (connection: NatsConnection): NatsConnectionImpl => {
  if (connection instanceof NatsConnectionImpl) return connection
  throw new Error("this is no connection of the client that Petrel was made with")
}

/** Returns the wire of a connection. */
export const wireOf = (
  connection: NatsConnection,
  onPermission: OnPermission = () => undefined
): Wire => new ClientWire(implOf(connection), onPermission)

/**
 * Fails the requests that wait for an answer as their time-outs would, some 10 s earlier: the
 * connection on which they would be answered is gone.
 */
export const failRequests = (connection: NatsConnection): void => {
  for (const request of implOf(connection).protocol.muxSubscriptions.all()) {
    const lost = new TimeoutError()
    lost.message = "the connection to the broker was lost"
    request.resolver(lost, {} as Msg)
  }
}
