import type { Socket } from "node:net"
import type { SecureContext } from "node:tls"
import { createSecureContext, getCACertificates } from "node:tls"
import { Effect } from "effect"
import type { Agent } from "undici"
import type { ConnectionCheck } from "../../domain/connection-check.ts"
import type { AttemptResult } from "../../domain/outcome.ts"
import type { Reach } from "../../policy/address.ts"
import { bothReaches, refusalOf } from "../../policy/address.ts"
import { allowanceOf } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import type { AttemptRequest, Running } from "./attempt.ts"
import { AfterParsing, startAttempt } from "./attempt.ts"
import type { CheckRequest } from "./connection-check.ts"
import { checkConnection } from "./connection-check.ts"
import type { AgentOptions, RefusedConnection } from "./connector.ts"
import { agent } from "./connector.ts"
import { NameResolver } from "./dns.ts"
import { ownAddresses } from "./this-host.ts"

/** Where a worker's requests may go, and which certificates are trusted for receivers. */
interface Egress {
  /** What all tenants may reach. */
  readonly everyone: Reach
  /** What single tenants may reach in addition, by tenant. */
  readonly tenants: ReadonlyMap<string, Reach>
  /**
   * CA certificates (PEM) trusted for receivers in addition to those that Node trusts, but not for
   * the broker. Those of NODE_EXTRA_CA_CERTS are trusted for the broker, and not for receivers.
   */
  readonly receiverCa?: string | undefined
  /** See {@link AgentOptions}. */
  readonly onOpened?: AgentOptions["onOpened"]
}

/** A refusal of the same address is logged once in this time, ms. */
const quietMs = 10 * 60_000
const maxLoggedRefusals = 1_000

/** Logs refused connections with the address, which the tenant's facts do not name. */
const makeRefusalLog = Effect.map(Effect.context<never>(), (context) => {
  const run = Effect.runForkWith(context)
  const logged = new Map<string, number>()
  return ({ address, host, port, tenant }: RefusedConnection): void => {
    const key = `${tenant} ${host} ${address} ${port}`
    const now = timers.monotonicMs()
    if (now - (logged.get(key) ?? Number.NEGATIVE_INFINITY) < quietMs) return
    if (logged.size >= maxLoggedRefusals) logged.clear()
    logged.set(key, now)
    run(
      Effect.logWarning(`nothing is sent to ${host}: ${address} port ${port} is not allowed`, {
        tenant
      })
    )
  }
})

/**
 * Returns the certificates trusted for receivers; undefined where they are exactly those that Node
 * trusts.
 */
const trust = (receiverCa: string | undefined): SecureContext | undefined => {
  const forBroker = new Set(getCACertificates("extra"))
  if (receiverCa === undefined && forBroker.size === 0) return undefined
  const usual = getCACertificates("default").filter((each) => !forBroker.has(each))
  if (receiverCa !== undefined) return createSecureContext({ ca: [...usual, receiverCa] })
  withoutExtra ??= createSecureContext({ ca: usual })
  return withoutExtra
}

/** One for all workers of this process: reading 150 certificates takes 20 ms of CPU. */
let withoutExtra: SecureContext | undefined

/** What a worker connects with, under the rules of {@link Egress}. */
export interface Connections {
  /** Returns the HTTP client of a tenant. */
  readonly agentOf: (tenant: string) => Agent
  /** Tries to connect to an endpoint's host, and sends no request. */
  readonly check: (request: CheckRequest) => Effect.Effect<ConnectionCheck>
}

/**
 * Makes the HTTP client for each tenant, for a scope. Tenants share one client and its connections.
 * A tenant that may reach more has its own, so that no other tenant uses a connection that only it
 * may make.
 */
export const makeConnections = Effect.fnUntraced(function* ({
  everyone,
  onOpened,
  receiverCa,
  tenants
}: Egress) {
  // Fails at the start, not at the first request, where the system does not list its addresses.
  ownAddresses()
  const names = new NameResolver()
  const onRefused = yield* makeRefusalLog
  const secureContext = trust(receiverCa)
  const optionsFor = (reach: Reach): AgentOptions => ({
    refuses: (ip, port) => refusalOf(ip, port, reach, ownAddresses()),
    onRefused,
    onOpened,
    resolve: names.resolve,
    secureContext
  })
  const openFor = Effect.fnUntraced(function* (reach: Reach) {
    const options = optionsFor(reach)
    return { options, agent: yield* agent(options) }
  })
  const common = yield* openFor(everyone)
  const others = new Map<string, typeof common>()
  for (const [tenant, reach] of tenants)
    others.set(tenant, yield* openFor(bothReaches(everyone, reach)))
  const of = (tenant: string) => others.get(tenant) ?? common
  return {
    agentOf: (tenant) => of(tenant).agent,
    check: (request) => checkConnection(of(request.tenant).options, request)
  } satisfies Connections
})

/**
 * The open connections to receivers, by the tenant for whose request each was made. A receiver may
 * have its connections kept for a minute: with many hosts one tenant would use up the worker's
 * memory and file descriptors. Beyond a tenant's part, connections are closed after their answer.
 */
export class OpenConnections {
  readonly #max: number
  readonly #hasOthers: () => boolean
  readonly #tenants = new Map<string, number>()
  #open = 0

  /**
   * @param max connections that may be open, those of requests in flight included.
   * @param hasOthers true where several tenants have endpoints.
   */
  constructor(max: number, hasOthers: () => boolean) {
    this.#max = max
    this.#hasOthers = hasOthers
  }

  /** Number of open connections. */
  get size(): number {
    return this.#open
  }

  /** Counts a connection until it is closed. */
  readonly opened = (tenant: string, socket: Pick<Socket, "once">): void => {
    this.#count(tenant, 1)
    socket.once("close", () => this.#count(tenant, -1))
  }

  /** True where the connection of a request that begins may stay open after its answer. */
  readonly mayKeep = (tenant: string): boolean => {
    const open = this.#open
    if (open < this.#max / 2) return true
    const own = this.#tenants.get(tenant) ?? 0
    const active = this.#tenants.size + (own === 0 ? 1 : 0)
    return own < allowanceOf(own, open, Math.max(active, this.#hasOthers() ? 2 : 1), this.#max)
  }

  #count(tenant: string, change: 1 | -1): void {
    this.#open += change
    const own = (this.#tenants.get(tenant) ?? 0) + change
    if (own === 0) this.#tenants.delete(tenant)
    else this.#tenants.set(tenant, own)
  }
}

/** Makes the requests of attempts. */
export interface HttpTransport {
  /** Starts one attempt, and calls `done` once with its result, unless it is interrupted. */
  start(request: AttemptRequest, done: (result: AttemptResult) => void): Running
}

/** Sends each tenant's requests with the HTTP client that may reach what the tenant may reach. */
export class AgentTransport implements HttpTransport {
  readonly #agentOf: (tenant: string) => Agent
  readonly #mayKeep: (tenant: string) => boolean
  readonly #afterParsing = new AfterParsing()

  /** @param mayKeep true where a tenant's connection may stay open after its answer. */
  constructor(agentOf: (tenant: string) => Agent, mayKeep: (tenant: string) => boolean) {
    this.#agentOf = agentOf
    this.#mayKeep = mayKeep
  }

  start(request: AttemptRequest, done: (result: AttemptResult) => void): Running {
    const { tenant } = request
    const agent = this.#agentOf(tenant)
    return startAttempt(agent, request, done, this.#mayKeep(tenant), this.#afterParsing)
  }
}
