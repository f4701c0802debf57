import type { EventEmitter } from "node:events"
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { timers } from "../time/timers.ts"
import { HeldConnections } from "./held-connections.ts"
import { networkOf } from "./network.ts"

/** How many connections a server has, and what it does about more. */
export interface ConnectionOptions {
  /** Connections at the same time. */
  readonly max: number
  /** Connections that have lost their place and are not closed yet. (Default: 2,048) */
  readonly maxHeld?: number | undefined
  /** False with TLS, where nothing can be written before its handshake. */
  readonly isPlain: boolean
  /** The answer of HTTP to a client that loses its place with a request on its way. */
  readonly crowded: string
  /** Called for each connection that loses its place. */
  readonly refused: () => void
}

/**
 * Of all connections, those by which nobody has come who is known. The rest is for those who are: they
 * come as strangers too, and are known with their first request.
 */
const strangersShare = 1 / 2

/** One connection of a client. */
interface Connection {
  readonly socket: Socket
  /** By which HTTP comes: with TLS another one, once the handshake is over. */
  stream: Socket | undefined
  /** The client's address or network while it is a stranger, then the tenant that it is known as. */
  owner: string
  isKnown: boolean
  /** True once it has lost its place. */
  isHeld: boolean
  /** Requests that have come by it. */
  requests: number
  /** Requests of it that were begun and are not answered. What waits for its turn is none of them. */
  begun: number
  /** Of the last request, while it is not answered. */
  response: ServerResponse | undefined
}

/** Connections by their owners, each owner's in the order in which they came or were last used. */
class Crowd {
  readonly #byOwner = new Map<string, Set<Connection>>()
  size = 0

  add(connection: Connection): void {
    const { owner } = connection
    const own = this.#byOwner.get(owner) ?? new Set()
    this.#byOwner.set(owner, own.add(connection))
    this.size++
  }

  remove(connection: Connection): void {
    const own = this.#byOwner.get(connection.owner)
    if (own?.delete(connection) !== true) return
    this.size--
    if (own.size === 0) this.#byOwner.delete(connection.owner)
  }

  /** Returns the first that may go of the owner that has most. */
  first(mayGo: (connection: Connection) => boolean): Connection | undefined {
    const greediest = [...this.#byOwner.values()].toSorted((a, b) => b.size - a.size)
    for (const own of greediest) for (const one of own) if (mayGo(one)) return one
    return undefined
  }
}

const keyOf = ({ remoteAddress = "", remotePort = 0 }: Socket): string =>
  `${remoteAddress} ${remotePort}`

const isIdle = ({ begun }: Connection): boolean => begun === 0

/**
 * Bounds the connections of a server. Where there are too many, one loses its place to a new one: of
 * strangers the oldest of the address that has most, of known ones the one that has been idle for
 * longest, or whose request only waits for its turn, of the tenant that has most. So who opens many, or
 * says nothing by them, loses its own. It is not read any more, and closed a second later or more: so
 * its client cannot come again at once. No address is bounded by itself: behind a proxy all clients have
 * the same one.
 */
export class Connections {
  readonly #options: ConnectionOptions
  readonly #maxStrangers: number
  readonly #all = new Map<string, Connection>()
  readonly #strangers = new Crowd()
  readonly #known = new Crowd()
  readonly #held: HeldConnections

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#held = new HeldConnections(options.maxHeld)
    this.#maxStrangers = Math.ceil(options.max * strangersShare)
  }

  /** Watches the connections of a server. */
  watch(server: Server): void {
    server.on("connection", (socket: Socket) => this.#accept(socket))
    server.on("secureConnection", (socket: Socket) => this.#secure(socket))
    for (const event of ["request", "checkContinue"] as const)
      server.on(event, ({ socket }, response) => this.#note(socket, response))
  }

  /** Notes that a request has come by a connection that is a tenant's beyond doubt. */
  recognize(socket: Socket, tenant: string): void {
    const connection = this.#all.get(keyOf(socket))
    if (connection === undefined || connection.isHeld) return
    this.#crowdOf(connection).remove(connection)
    connection.isKnown = true
    connection.owner = tenant
    this.#known.add(connection)
  }

  /** Whether the request that has come last by a connection is its first. */
  isFirst(socket: Socket): boolean {
    return this.#all.get(keyOf(socket))?.requests === 1
  }

  /** Whether an answer is being written to a connection. */
  isAnswering(socket: Socket): boolean {
    return this.#all.get(keyOf(socket))?.response?.headersSent === true
  }

  /** Notes that a request is begun: its connection does not lose its place while it is answered. */
  begin(socket: Socket, response: Pick<EventEmitter, "once">): void {
    const connection = this.#all.get(keyOf(socket))
    if (connection === undefined) return
    connection.begun++
    response.once("close", () => {
      connection.begun--
    })
  }

  /** How many there are: of strangers, of those who are known, and how many have lost their place. */
  get counts() {
    return { strangers: this.#strangers.size, known: this.#known.size, held: this.#held.size }
  }

  #crowdOf({ isKnown }: Connection): Crowd {
    return isKnown ? this.#known : this.#strangers
  }

  #accept(socket: Socket): void {
    const key = keyOf(socket)
    const owner = networkOf(socket.remoteAddress ?? "")
    const connection: Connection = {
      socket,
      stream: this.#options.isPlain ? socket : undefined,
      owner,
      isKnown: false,
      isHeld: false,
      requests: 0,
      begun: 0,
      response: undefined
    }
    this.#all.set(key, connection)
    this.#strangers.add(connection)
    socket.once("close", () => this.#forget(key, connection))
    if (this.#strangers.size > this.#maxStrangers)
      this.#close(this.#strangers.first(() => true) ?? connection)
    else if (this.#strangers.size + this.#known.size > this.#options.max)
      this.#close(this.#known.first(isIdle) ?? connection)
  }

  #secure(socket: Socket): void {
    const connection = this.#all.get(keyOf(socket))
    if (connection === undefined) return
    connection.stream = socket
    // Node begins to read once this event is over.
    if (connection.isHeld) timers.immediate(() => socket.pause())
  }

  /** Takes a connection's place at once. Nothing more is read by it, and it closes later. */
  #close(connection: Connection): void {
    this.#options.refused()
    this.#crowdOf(connection).remove(connection)
    connection.isHeld = true
    connection.stream?.pause()
    this.#held.hold(connection.socket, connection.owner, () => {
      const { socket, stream } = connection
      if (stream !== undefined && !this.isAnswering(stream)) stream.write(this.#options.crowded)
      ;(stream ?? socket).destroy()
    })
  }

  #forget(key: string, connection: Connection): void {
    this.#crowdOf(connection).remove(connection)
    if (this.#all.get(key) === connection) this.#all.delete(key)
  }

  #note(socket: Socket, response: ServerResponse): void {
    const connection = this.#all.get(keyOf(socket))
    if (connection === undefined) return
    connection.requests++
    connection.response = response
    response.once("close", () => {
      if (connection.response === response) connection.response = undefined
    })
  }
}
