import type { LookupAddress } from "node:dns"
import { Resolver } from "node:dns/promises"
import { setTimeout as pause } from "node:timers/promises"
import { HostNames } from "./host-names.ts"
import { hasGlobalV6 } from "./own-addresses.ts"
import { SystemFile } from "./system-file.ts"

/** A host name did not resolve. The code is that of c-ares, such as ENOTFOUND. */
export class NameUnresolved extends Error {
  readonly code: string
  override readonly name = "NameUnresolved"

  constructor(message: string, code: string) {
    super(message)
    this.code = code
  }
}

type Found = ReadonlyArray<LookupAddress> | NameUnresolved

/** Finds all addresses of a host name, and calls `done` once, perhaps before it returns. */
export type Resolve = (hostname: string, tenant: string, done: (found: Found) => void) => void

export interface NamesOptions {
  /** (Default: /etc/hosts) */
  readonly hostsPath?: string
  /** Name servers as `address:port`. (Default: those of /etc/resolv.conf, read again when it has changed) */
  readonly servers?: ReadonlyArray<string>
  /** Limit for one look-up, the wait for its turn included, ms. (Default: 5 000) */
  readonly timeoutMs?: number
}

/** Look-ups of one tenant at the same time; what is beyond waits, and only that tenant's. */
const maxLookupsPerTenant = 64
/** Answers that are kept. */
const maxCachedNames = 10_000
/** An answer is kept as long as its records say, and no longer than this, ms. */
const maxTtlMs = 60_000
/** How long it is kept that a name does not resolve, ms. */
const failureKept = 2_000
/** How long the addresses of one family wait for those of the other, ms. */
const otherFamilyMs = 500
/** A silent name server is asked again after some 1, 2 or 3 and 5 s, however quick it was before. */
const patience = { timeout: 1_000, maxTimeout: 2_000, tries: 5 }

interface Answer {
  readonly found: Found
  /** On the monotonic clock, ms. */
  readonly until: number
}

interface Waiter {
  readonly name: string
  readonly tenant: string
  readonly settle: (found: Found) => void
  readonly isOver: () => boolean
}

/** A tenant's look-ups: how many are under way, and which wait for their turn. */
interface Line {
  underWay: number
  readonly waiting: Array<Waiter>
}

/**
 * Host names and their addresses: from the hosts file, else from the name servers, asked by c-ares
 * without a thread. The system's resolver (getaddrinfo) has a few threads only, and names whose
 * servers are silent hold all of them, for every tenant.
 *
 * Look-ups of one name share an answer. Whoever uses an address must ask the guard again: an answer
 * that is kept may be one that is not allowed.
 */
export class Names {
  readonly #options: NamesOptions
  readonly #hosts: HostNames
  readonly #timeoutMs: number
  readonly #answers = new Map<string, Answer>()
  readonly #underWay = new Map<string, Array<Waiter>>()
  readonly #lines = new Map<string, Line>()
  #resolver: Resolver | undefined
  readonly #resolvConf = new SystemFile("/etc/resolv.conf")
  #configured = ""

  constructor(options: NamesOptions = {}) {
    this.#options = options
    this.#hosts = new HostNames(options.hostsPath)
    this.#timeoutMs = options.timeoutMs ?? 5_000
  }

  readonly resolve: Resolve = (hostname, tenant, done) => {
    const name = hostname.toLowerCase().replace(/\.$/, "")
    const known = this.#known(name)
    if (known !== undefined) return done(known)
    let isOver = false
    const settle = (found: Found): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      done(found)
    }
    const timer = setTimeout(() => settle(this.#unanswered(name, tenant)), this.#timeoutMs)
    this.#begin({ name, tenant, settle, isOver: () => isOver })
  }

  #known(name: string): Found | undefined {
    const listed = this.#hosts.find(name)
    if (listed !== undefined) return inOrder(listed)
    const answer = this.#answers.get(name)
    if (answer === undefined) return undefined
    if (answer.until > performance.now()) return answer.found
    this.#answers.delete(name)
    return undefined
  }

  /** Joins the look-up that is under way, begins one, or waits for its turn. */
  #begin(waiter: Waiter): void {
    const others = this.#underWay.get(waiter.name)
    if (others !== undefined) {
      others.push(waiter)
      return
    }
    const line = this.#lines.get(waiter.tenant) ?? { underWay: 0, waiting: [] }
    this.#lines.set(waiter.tenant, line)
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
      this.#next(waiter.tenant, line)
    })
  }

  /** Goes on with the tenant's line as far as there is room. */
  #next(tenant: string, line: Line): void {
    while (line.underWay < maxLookupsPerTenant) {
      const waiter = line.waiting.shift()
      if (waiter === undefined) break
      if (waiter.isOver()) continue
      const known = this.#known(waiter.name)
      if (known === undefined) this.#begin(waiter)
      else waiter.settle(known)
    }
    if (line.underWay === 0) this.#lines.delete(tenant)
  }

  #keep(name: string, answer: Answer): void {
    this.#answers.delete(name)
    this.#answers.set(name, answer)
    const [oldest] = this.#answers.keys()
    if (this.#answers.size > maxCachedNames && oldest !== undefined) this.#answers.delete(oldest)
  }

  /** With the name servers that the system has now. */
  #current(): Resolver {
    const { servers } = this.#options
    const configured = servers?.join(" ") ?? this.#resolvConf.text()
    if (this.#resolver === undefined || configured !== this.#configured) {
      this.#resolver = new Resolver(patience)
      if (servers !== undefined) this.#resolver.setServers(servers)
      this.#configured = configured
    }
    return this.#resolver
  }

  #unanswered(name: string, tenant: string): NameUnresolved {
    const within = `within ${this.#timeoutMs} ms`
    return this.#underWay.has(name)
      ? new NameUnresolved(`no name server answered for ${name} ${within}`, "ETIMEOUT")
      : new NameUnresolved(
          `${name} was not looked up ${within}: ${maxLookupsPerTenant} names of tenant ${tenant} wait for silent name servers`,
          "ETIMEOUT"
        )
  }
}

/** The family first that more likely gets through; the other is tried soon after. */
const inOrder = (addresses: ReadonlyArray<LookupAddress>): ReadonlyArray<LookupAddress> => {
  const first = hasGlobalV6() ? 6 : 4
  return addresses.toSorted((a, b) => Number(b.family === first) - Number(a.family === first))
}

/** Asks for both families, and takes what there is after `limitMs`. */
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
  // A name server that is silent about one family is no reason to do without the other.
  const one = Promise.any(asked).then(
    () => pause(otherFamilyMs, undefined, { ref: false }),
    () => both
  )
  await Promise.race([both, one, pause(limitMs, undefined, { ref: false })])
  const now = performance.now()
  return addresses.length > 0
    ? { found: inOrder(addresses), until: now + ttl }
    : { found: unresolved(name, codes), until: now + failureKept }
}

const notThere: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA"])

/**
 * In words, what the name servers said. An error of theirs comes before what they do not have.
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
