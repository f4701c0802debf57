import { type LookupAddress, type LookupOptions, lookup as systemLookup } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { Effect } from "effect"
import { Agent, buildConnector } from "undici"

/** No connection was made, or none was used: the address is not allowed. */
export class AddressRefused extends Error {
  readonly code = "PETREL_ADDRESS"
  override readonly name = "AddressRefused"

  constructor(host: string, address: string) {
    super(
      host === address
        ? `the address ${address} is not allowed`
        : `${host} is ${address}, an address that is not allowed`
    )
  }
}

type Resolved = (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void

/** Finds all addresses of a host name. */
export type Resolve = (hostname: string, options: LookupOptions, done: Resolved) => void

const resolveBySystem: Resolve = (hostname, options, done) =>
  systemLookup(hostname, { ...options, all: true }, done)

export interface AgentOptions {
  /** Whether a request may go to an IP address, in whatever form of text it comes. */
  readonly allows: (ip: string) => boolean
  /** Limit for name look-up, TCP and TLS together, in ms. (Default: 10 000) */
  readonly connectTimeoutMs?: number
  /** (Default: the system's resolver, /etc/hosts included) */
  readonly resolve?: Resolve
}

/**
 * Look-ups of the same name share one call while it runs. The system's resolver works on libuv's
 * few threads: without this the attempts for one host whose name server is silent would hold all
 * of them, and every other endpoint would wait.
 */
const shared = (resolve: Resolve): Resolve => {
  const waiting = new Map<string, Array<Resolved>>()
  return (hostname, options, done) => {
    const key = `${hostname} ${options.family ?? 0} ${options.hints ?? 0}`
    const others = waiting.get(key)
    if (others !== undefined) {
      others.push(done)
      return
    }
    const all = [done]
    waiting.set(key, all)
    resolve(hostname, options, (error, addresses) => {
      waiting.delete(key)
      for (const each of all) each(error, addresses)
    })
  }
}

const unreachable = (hostname: string, [first]: ReadonlyArray<LookupAddress>): Error =>
  first === undefined
    ? Object.assign(new Error(`${hostname} has no address`), { code: "ENOTFOUND" })
    : new AddressRefused(hostname, first.address)

/** Hands on only addresses that are allowed, so that no connection to another is even begun. */
const guardedLookup =
  (allows: (ip: string) => boolean, resolve: Resolve): LookupFunction =>
  (hostname, options, callback) =>
    resolve(hostname, options, (error, addresses) => {
      if (error !== null) return callback(error, [])
      const allowed = addresses.filter(({ address }) => allows(address))
      const [first] = allowed
      if (first === undefined) return callback(unreachable(hostname, addresses), [])
      if (options.all === true) callback(null, allowed)
      else callback(null, first.address, first.family)
    })

let freshMs: number | undefined

/**
 * How long the connection took that is being handed over right now, in ms, else undefined.
 *
 * undici tells a request nothing about its connection, but starts the one that a connection was
 * made for while the connector's callback runs: asked from `onRequestStart`, this is that
 * request's time for look-up, TCP and TLS, and undefined on a connection that was kept alive.
 */
export const freshConnectMs = (): number | undefined => freshMs

const guardedConnector = (options: Required<AgentOptions>): buildConnector.connector => {
  const { allows, connectTimeoutMs, resolve } = options
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    lookup: guardedLookup(allows, shared(resolve))
  })
  return (target, callback) => {
    const startedAt = performance.now()
    // A literal address is never looked up. URL has already brought forms such as 0x7f.1 into order.
    if (isIP(target.hostname) !== 0 && !allows(target.hostname)) {
      const refused = new AddressRefused(target.hostname, target.hostname)
      queueMicrotask(() => callback(refused, null))
      return
    }
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      // What counts is who is at the other end, whatever was resolved before.
      const address = socket.remoteAddress
      if (address === undefined || !allows(address)) {
        socket.destroy()
        return callback(
          address === undefined
            ? new Error("the connection was closed as soon as it was made")
            : new AddressRefused(target.hostname, address),
          null
        )
      }
      freshMs = performance.now() - startedAt
      try {
        callback(null, socket)
      } finally {
        freshMs = undefined
      }
    })
  }
}

/**
 * The HTTP client for all attempts of a process: connections are kept alive per origin and never
 * go to an address that is not allowed. HTTP/1.1 only. Their number is not limited here, since
 * each endpoint's cap on requests in flight does that; nor is time beyond the connect time-out,
 * since an attempt has one limit for all of it.
 */
export const makeAgent = (options: AgentOptions): Agent =>
  new Agent({
    connect: guardedConnector({
      connectTimeoutMs: 10_000,
      resolve: resolveBySystem,
      ...options
    }),
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveMaxTimeout: 60_000
  })

/** `makeAgent` for a scope: its end closes all connections at once, used or idle. */
export const agent = (options: AgentOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => makeAgent(options)),
    (made) => Effect.promise(() => made.destroy())
  )
