import type { LookupAddress } from "node:dns"
import { Resolver } from "node:dns/promises"
import { OrderedMap } from "../../broker/ordered-map.ts"
import { spanText } from "../../text/quantities.ts"
import { timers } from "../../time/timers.ts"
import { HostNames, hasGlobalV6, SystemFile } from "./this-host.ts"

/** A host name did not resolve. The code is that of c-ares, such as ENOTFOUND. */
export class NameUnresolved extends Error {
  readonly code: string
  override readonly name = "NameUnresolved"

  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

type LookupResult = ReadonlyArray<LookupAddress> | NameUnresolved

/** Finds all addresses of a host name. Calls `done` once, possibly before it returns. */
export type Resolve = (
  hostname: string,
  tenant: string,
  done: (found: LookupResult) => void
) => void

export interface NameResolverOptions {
  /** (Default: /etc/hosts) */
  readonly hostsPath?: string
  /**
   * Name servers as `address:port`. (Default: those of /etc/resolv.conf, read again when it has
   * changed)
   */
  readonly servers?: ReadonlyArray<string>
  /** Time limit of one look-up, its wait in line included, ms. (Default: 5 000) */
  readonly timeoutMs?: number
}

/**
 * Maximum look-ups of one tenant at the same time: of names that were answered before, and of
 * others. Further ones wait, and only that tenant's.
 */
const maxLookupsPerTenant = 64
/** Maximum answers in the cache. */
const maxCachedNames = 10_000
/** An answer is cached for its records' TTL, and no longer than this, ms. */
const maxTtlMs = 60_000
/** How long a failed look-up is cached, ms. */
const failureKept = 2_000
/** How long the addresses of one family wait for those of the other, ms. */
const otherFamilyMs = 500
/**
 * A silent name server is asked again after some 1, 2 or 3 and 5 s, however quick it was before.
 */
const resolverLimits = { timeout: 1_000, maxTimeout: 2_000, tries: 5 }

interface Answer {
  readonly found: LookupResult
  /** End of its time in the cache, ms of the monotonic clock. */
  readonly until: number
}

interface Waiter {
  readonly name: string
  readonly tenant: string
  readonly settle: (found: LookupResult) => void
  readonly isOver: () => boolean
}

/** A tenant's look-ups: the number in flight, and those that wait in line. */
interface Line {
  underWay: number
  readonly waiting: Array<Waiter>
}

type Lines = Map<string, Line>

/**
 * Host names and their addresses: from the hosts file, else from the name servers, through c-ares,
 * which needs no thread. The system's resolver (getaddrinfo) has only a few threads, and names
 * whose servers are silent would hold all of them, for every tenant.
 *
 * Look-ups of one name share an answer. A caller that uses an address must ask the address guard
 * again: a cached address may not be allowed.
 */
export class NameResolver {
  readonly #options: NameResolverOptions
  readonly #hosts: HostNames
  readonly #timeoutMs: number
  /** Answers by name. One that is too old to be used still says that the name was answered. */
  readonly #answers = new OrderedMap<string, Answer>()
  readonly #underWay = new Map<string, Array<Waiter>>()
  /** By tenant: names that were answered before do not wait for those that may never be. */
  readonly #answeredLines: Lines = new Map()
  readonly #otherLines: Lines = new Map()
  #resolver: Resolver | undefined
  readonly #resolvConf = new SystemFile("/etc/resolv.conf")
  #configured = ""

  constructor(options: NameResolverOptions = {}) {
    this.#options = options
    this.#hosts = new HostNames(options.hostsPath)
    this.#timeoutMs = options.timeoutMs ?? 5_000
  }

  readonly resolve: Resolve = (hostname, tenant, done) => {
    const name = hostname.toLowerCase().replace(/\.$/, "")
    const cached = this.#cached(name)
    if (cached !== undefined) return done(cached)
    let isOver = false
    const settle = (found: LookupResult): void => {
      if (isOver) return
      isOver = true
      timers.cancel(timer)
      done(found)
    }
    const timer = timers.after(this.#timeoutMs, () => settle(this.#unanswered(name, tenant)))
    this.#begin({ name, tenant, settle, isOver: () => isOver })
  }

  #cached(name: string): LookupResult | undefined {
    const listed = this.#hosts.find(name)
    if (listed !== undefined) return inOrder(listed)
    const answer = this.#answers.get(name)
    return answer !== undefined && answer.until > timers.monotonicMs() ? answer.found : undefined
  }

  #linesFor(name: string): Lines {
    const { found } = this.#answers.get(name) ?? {}
    const wasAnswered = found !== undefined && !(found instanceof NameUnresolved)
    return wasAnswered ? this.#answeredLines : this.#otherLines
  }

  /** Joins the look-up of the same name that is in flight, begins one, or waits in line. */
  #begin(waiter: Waiter): void {
    const others = this.#underWay.get(waiter.name)
    if (others !== undefined) {
      others.push(waiter)
      return
    }
    const lines = this.#linesFor(waiter.name)
    const line = lines.get(waiter.tenant) ?? { underWay: 0, waiting: [] }
    lines.set(waiter.tenant, line)
    if (line.underWay >= maxLookupsPerTenant) {
      line.waiting.push(waiter)
      return
    }
    line.underWay++
    const all = [waiter]
    this.#underWay.set(waiter.name, all)
    void lookUp(this.#current(), waiter.name, this.#timeoutMs).then((answer) => {
      this.#underWay.delete(waiter.name)
      this.#keep(waiter.name, answer)
      for (const each of all) each.settle(answer.found)
      line.underWay--
      this.#next(waiter.tenant, line, lines)
    })
  }

  /** Begins waiting look-ups of the tenant as far as its limit allows. */
  #next(tenant: string, line: Line, lines: Lines): void {
    while (line.underWay < maxLookupsPerTenant) {
      const waiter = line.waiting.shift()
      if (waiter === undefined) break
      if (waiter.isOver()) continue
      const cached = this.#cached(waiter.name)
      if (cached === undefined) this.#begin(waiter)
      else waiter.settle(cached)
    }
    if (line.underWay === 0) lines.delete(tenant)
  }

  #keep(name: string, answer: Answer): void {
    this.#answers.delete(name)
    this.#answers.set(name, answer)
    if (this.#answers.size > maxCachedNames) this.#answers.takeOldest()
  }

  /** Returns a resolver with the name servers that the system has now. */
  #current(): Resolver {
    const { servers } = this.#options
    const configured = servers?.join(" ") ?? this.#resolvConf.text()
    if (this.#resolver === undefined || configured !== this.#configured) {
      this.#resolver = new Resolver(resolverLimits)
      if (servers !== undefined) this.#resolver.setServers(servers)
      this.#configured = configured
    }
    return this.#resolver
  }

  #unanswered(name: string, tenant: string): NameUnresolved {
    const within = `within ${spanText(this.#timeoutMs)}`
    return this.#underWay.has(name)
      ? new NameUnresolved(`no name server answered for ${name} ${within}`, "ETIMEOUT")
      : new NameUnresolved(
          `${name} was not looked up ${within}: ${maxLookupsPerTenant} names of tenant ${tenant} wait for silent name servers`,
          "ETIMEOUT"
        )
  }
}

/** Sorts the family first that is more likely to connect. The other one is tried soon after. */
const inOrder = (addresses: ReadonlyArray<LookupAddress>): ReadonlyArray<LookupAddress> => {
  const first = hasGlobalV6() ? 6 : 4
  return addresses.toSorted((a, b) => Number(b.family === first) - Number(a.family === first))
}

/** Asks for both families, and takes what has arrived after `limitMs`. */
const lookUp = async (resolver: Resolver, name: string, limitMs: number): Promise<Answer> => {
  const addresses: Array<LookupAddress> = []
  const codes: Array<string> = []
  let ttl = maxTtlMs
  const ask = (family: 4 | 6) =>
    (family === 4
      ? resolver.resolve4(name, { ttl: true })
      : resolver.resolve6(name, { ttl: true })
    ).then((records) => {
      for (const record of records) {
        addresses.push({ address: record.address, family })
        ttl = Math.min(ttl, record.ttl * 1_000)
      }
    })
  const asked = [ask(4), ask(6)].map((answer) =>
    answer.catch((error: unknown) => {
      codes.push(error instanceof Error && "code" in error ? String(error.code) : String(error))
      throw error
    })
  )
  const both = Promise.allSettled(asked)
  // A name server that is silent about one family does not delay the other for long.
  const one = Promise.any(asked).then(
    () => pause(otherFamilyMs),
    () => both
  )
  await Promise.race([both, one, pause(limitMs)])
  const now = timers.monotonicMs()
  return addresses.length > 0
    ? { found: inOrder(addresses), until: now + ttl }
    : { found: unresolved(name, codes), until: now + failureKept }
}

const pause = (ms: number) =>
  new Promise<void>((resolve) => {
    timers.after(ms, resolve).unref()
  })

const notThere: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"])

/**
 * Makes the error for what the name servers answered. An error of theirs takes precedence over a
 * missing name or record.
 *
 * @param codes one for each family that was answered.
 */
const unresolved = (name: string, codes: ReadonlyArray<string>): NameUnresolved => {
  const code =
    codes.find((each) => !notThere.has(each)) ??
    codes.find((each) => each === "ENOTFOUND") ??
    (codes.length < 2 ? "ETIMEOUT" : "ENODATA")
  const say = (message: string) => new NameUnresolved(message, code)
  switch (code) {
    case "ENOTFOUND":
      return say(`the name ${name} does not exist`)
    case "ENODATA":
      return say(`the name ${name} has no address`)
    case "ETIMEOUT":
    case "ECONNREFUSED":
      return say(`no name server answered for ${name}`)
    case "ESERVFAIL":
    case "EREFUSED":
      return say(`the name server could not answer for ${name} (${code.slice(1)})`)
    default:
      return say(`${name} could not be looked up (${code})`)
  }
}
