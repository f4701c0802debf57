import type { LookupAddress } from "node:dns"
import { isIP, type LookupFunction, Socket } from "node:net"
import type { SecureContext } from "node:tls"
import { Effect } from "effect"
import { Agent, buildConnector, type Dispatcher } from "undici"
import type { AddressRefusal } from "../../policy/address.ts"
import { defaultConnectTimeoutMs } from "../../policy/attempt-timeout.ts"
import { timers } from "../../time/timers.ts"
import { NameResolver, NameUnresolved, type Resolve } from "./dns.ts"

/**
 * No connection was made or used, because the address or its port is not allowed. The message is
 * for the tenant: it names no address that is not in the URL itself.
 */
export class AddressRefused extends Error {
  readonly code = "PETREL_ADDRESS"
  override readonly name = "AddressRefused"

  constructor(host: string, port: number, address: string, refusal: AddressRefusal) {
    super(
      refusal === "port"
        ? `port ${port} is not allowed`
        : host === address
          ? `the address ${address} is not allowed`
          : `${host} resolves to an address that is not allowed`
    )
  }
}

/** A refused connection, for the operator. */
export interface RefusedConnection {
  readonly tenant: string
  readonly host: string
  readonly address: string
  readonly port: number
}

/** The receiver accepted a connection, and closed it at once. */
class ClosedAtOnce extends Error {
  readonly code = "ECONNRESET"

  constructor() {
    super("the connection was closed as soon as it was made")
  }
}

export interface AgentOptions {
  /**
   * Returns why no request may go to this port of an IP address, in any text form; undefined where
   * it may.
   */
  readonly refuses: (ip: string, port: number) => AddressRefusal | undefined
  /** Called with each refused connection. */
  readonly onRefused?: ((refused: RefusedConnection) => void) | undefined
  /** Called with each connection that was made, and the tenant whose request it was made for. */
  readonly onOpened?: ((tenant: string, socket: Socket) => void) | undefined
  /** (Default: the hosts file, and the system's name servers) */
  readonly resolve?: Resolve
  /** Certificates trusted for receivers. (Default: those of Node itself) */
  readonly secureContext?: SecureContext | undefined
}

let freshMs: number | undefined

/**
 * Returns how long the connection took that is being handed over right now, ms; undefined where
 * none is.
 *
 * undici tells a request nothing about its connection. But while the connector's callback runs,
 * undici starts the request for which the connection was made. Called from `onRequestStart`, this
 * returns that request's time for look-up, TCP and TLS, or undefined on a connection that was kept
 * alive.
 */
export const freshConnectMs = (): number | undefined => freshMs

/** Whose request is dispatched, and what holds for the connection that it may need. */
export interface ConnectionTerms {
  readonly tenant: string
  /** Time limit of name look-up, TCP and TLS together, ms. undici notices up to a second late. */
  readonly connectTimeoutMs: number
}

/** The terms of the request that is being dispatched right now. */
let dispatchingFor: ConnectionTerms = { tenant: "", connectTimeoutMs: defaultConnectTimeoutMs }

/** The socket that the dispatch of the moment has begun to connect. */
let connecting: Socket | undefined

/**
 * Dispatches a request in the name of a tenant, so that its name look-ups wait for no other
 * tenant's, and with its own connect time-out. undici tells the connector nothing about the request
 * that needs a connection, but calls it synchronously during the dispatch.
 *
 * Returns the socket that connects for this request alone; undefined where a connection was there,
 * or none may be made. undici aborts no request that waits for its connection: destroying the
 * socket does.
 */
export const dispatchFor = (
  terms: ConnectionTerms,
  agent: Agent,
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler
): Socket | undefined => {
  const before = dispatchingFor
  dispatchingFor = terms
  connecting = undefined
  try {
    agent.dispatch(options, handler)
    return connecting
  } finally {
    dispatchingFor = before
    connecting = undefined
  }
}

/** Upper bound of the connectors that are kept: each has a cache of TLS sessions. */
const maxConnectors = 64
/** Longest delay of a Node timer, ms. */
const maxTimerMs = 2 ** 31 - 1

/** Returns undici's connector for a time-out, ms. undici has no time-out per connection. */
const connectorByTimeout = (options: buildConnector.BuildOptions) => {
  const made = new Map<number, buildConnector.connector>()
  return (timeoutMs: number): buildConnector.connector => {
    const timeout = Math.min(timeoutMs, maxTimerMs)
    const known = made.get(timeout)
    if (known !== undefined) return known
    if (made.size >= maxConnectors) made.clear()
    const connector = buildConnector({ ...options, timeout })
    made.set(timeout, connector)
    return connector
  }
}

/** A connection that is about to be made. */
type WantedConnection = Omit<RefusedConnection, "address">

/** Returns the addresses that may be connected to; if there is none, why. */
const permitted = (
  { onRefused, refuses }: AgentOptions,
  wanted: WantedConnection,
  addresses: ReadonlyArray<LookupAddress>
): ReadonlyArray<LookupAddress> | AddressRefused => {
  const refusals = addresses.map(({ address }) => refuses(address, wanted.port))
  const [refusal] = refusals
  const [first] = addresses
  if (first === undefined || refusal === undefined || refusals.includes(undefined))
    return addresses.filter((_, index) => refusals[index] === undefined)
  onRefused?.({ ...wanted, address: first.address })
  return new AddressRefused(wanted.host, wanted.port, first.address, refusal)
}

const guardedConnector = (options: AgentOptions): buildConnector.connector => {
  const { resolve = new NameResolver().resolve } = options
  /** Set while a connection begins, which is when net looks up the addresses. */
  let wanted: WantedConnection | undefined
  /** Passes on allowed addresses only, so that no connection to another one begins. */
  const lookup: LookupFunction = (hostname, { all }, callback) => {
    const asked = wanted ?? { tenant: "", host: hostname, port: 0 }
    resolve(hostname, asked.tenant, (found) => {
      const allowed = found instanceof Error ? found : permitted(options, asked, found)
      if (allowed instanceof Error) return callback(allowed, [])
      const [first] = allowed
      if (first === undefined)
        callback(new NameUnresolved(`the name ${hostname} has no address`, "ENODATA"), [])
      else if (all === true) callback(null, [...allowed])
      else callback(null, first.address, first.family)
    })
  }
  const { secureContext } = options
  const connectWithin = connectorByTimeout({
    allowH2: false,
    lookup,
    ...(secureContext === undefined ? {} : { secureContext })
  })
  return (target, callback) => {
    const startedAt = timers.monotonicMs()
    const { hostname: host } = target
    const port = Number(target.port) || (target.protocol === "https:" ? 443 : 80)
    const { connectTimeoutMs, tenant } = dispatchingFor
    const asked = { tenant, host, port }
    // A literal address is never looked up. URL has already normalized forms such as 0x7f.1.
    const refused =
      isIP(host) === 0 ? undefined : permitted(options, asked, [{ address: host, family: 0 }])
    if (refused instanceof Error) {
      queueMicrotask(() => callback(refused, null))
      return
    }
    wanted = asked
    const begun: unknown = connectWithin(connectTimeoutMs)(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      // The address of the peer decides, whatever was resolved before.
      const address = socket.remoteAddress
      const reached =
        address === undefined
          ? new ClosedAtOnce()
          : permitted(options, asked, [{ address, family: 0 }])
      if (reached instanceof Error) {
        socket.destroy()
        return callback(reached, null)
      }
      options.onOpened?.(tenant, socket)
      freshMs = timers.monotonicMs() - startedAt
      try {
        callback(null, socket)
      } finally {
        freshMs = undefined
      }
    })
    wanted = undefined
    // Its types do not say that undici's connector returns the socket.
    if (begun instanceof Socket) connecting = begun
  }
}

/**
 * The HTTP client for all attempts of a process. Connections are kept alive per origin, and never
 * go to an address that is not allowed. HTTP/1.1 only. It does not limit the number of connections,
 * because each endpoint's limit of requests in flight does. Beyond the connect time-out it sets no
 * time limit, because an attempt has one limit for all of it.
 */
const makeAgent = (options: AgentOptions): Agent =>
  new Agent({
    connect: guardedConnector(options),
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveMaxTimeout: 60_000
  })

/** {@link makeAgent} for a scope: its end closes all connections at once, used or idle. */
export const agent = (options: AgentOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => makeAgent(options)),
    (made) => Effect.promise(() => made.destroy())
  )
