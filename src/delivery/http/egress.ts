import { createSecureContext, getCACertificates, type SecureContext } from "node:tls"
import { Effect } from "effect"
import type { Agent } from "undici"
import { bothReaches, type Reach, refusalOf } from "../../policy/address.ts"
import { agent, type Refused } from "./connector.ts"
import { Names } from "./names.ts"
import { ownAddresses } from "./own-addresses.ts"

/** Where a worker's requests may go, and what vouches for receivers. */
export interface Egress {
  /** What all tenants may reach. */
  readonly everyone: Reach
  /** What single tenants may reach besides, by tenant. */
  readonly tenants: ReadonlyMap<string, Reach>
  /**
   * Certificates of authorities (PEM) that vouch for receivers besides those that Node trusts, and
   * not for the broker. Those of NODE_EXTRA_CA_CERTS vouch for the broker, and not for receivers.
   */
  readonly receiverCa?: string | undefined
}

/** A refusal of the same address is logged once in this time, ms. */
const quietMs = 10 * 60_000
const maxLoggedRefusals = 1_000

/** Logs refused connections with the address, which the tenant's facts do not name. */
const makeRefusalLog = Effect.map(Effect.context<never>(), (context) => {
  const run = Effect.runForkWith(context)
  const logged = new Map<string, number>()
  return ({ address, host, port, tenant }: Refused): void => {
    const key = `${tenant} ${host} ${address} ${port}`
    const now = performance.now()
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

/** What vouches for receivers; undefined where that is all that Node trusts. */
const trust = (receiverCa: string | undefined): SecureContext | undefined => {
  const forBroker = new Set(getCACertificates("extra"))
  if (receiverCa === undefined && forBroker.size === 0) return undefined
  const usual = getCACertificates("default").filter((each) => !forBroker.has(each))
  return createSecureContext({ ca: receiverCa === undefined ? usual : [...usual, receiverCa] })
}

/**
 * The HTTP client for each tenant, for a scope. Tenants share one, and its connections; one that
 * may reach more has its own, so that nobody else uses a connection that only it may make.
 */
export const makeAgents = Effect.fnUntraced(function* ({ everyone, receiverCa, tenants }: Egress) {
  // Better now than at the first request, where the system does not tell them.
  ownAddresses()
  const names = new Names()
  const onRefused = yield* makeRefusalLog
  const secureContext = trust(receiverCa)
  const agentFor = (reach: Reach) =>
    agent({
      refuses: (ip, port) => refusalOf(ip, port, reach, ownAddresses()),
      onRefused,
      resolve: names.resolve,
      secureContext
    })
  const common = yield* agentFor(everyone)
  const others = new Map<string, Agent>()
  for (const [tenant, reach] of tenants)
    others.set(tenant, yield* agentFor(bothReaches(everyone, reach)))
  return (tenant: string): Agent => others.get(tenant) ?? common
})
