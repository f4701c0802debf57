import type { PartitionOwners } from "../policy/shares.ts"
import { hostShare, mayTakeMore } from "../policy/shares.ts"
import type { HostEndpoints, HostIndex } from "./host-index.ts"
import type { SharedHost } from "./inherited-settings.ts"

/** An endpoint's lane, as the line for a host knows it. */
interface HostWaiter {
  /** Called when it is the lane's turn: begins one request if the lane still can. */
  readonly turn: () => boolean
}

/** A request that is about to begin, or is in flight. */
export interface HostPlace {
  readonly lane: HostWaiter
  /** The line that counts it; undefined where its host has no cap. */
  hostLine: HostLine | undefined
}

/** A cap, and the part of it that this worker may use. */
class CapShare {
  #cap: number | undefined
  #owners: PartitionOwners | undefined
  #version = -1
  #share = Number.POSITIVE_INFINITY

  /** Returns the share; recomputed where anything that it depends on has changed. */
  of(cap: number | undefined, endpoints: () => HostEndpoints, owners: PartitionOwners) {
    if (cap === undefined) return Number.POSITIVE_INFINITY
    const { hashes, version } = endpoints()
    if (cap !== this.#cap || owners !== this.#owners || version !== this.#version) {
      this.#cap = cap
      this.#owners = owners
      this.#version = version
      this.#share = hostShare(cap, hashes, owners)
    }
    return this.#share
  }
}

/** Requests of one tenant's endpoints to one host: those in flight, and lanes that wait for one. */
class HostLine {
  readonly tenant: string
  readonly host: CappedHost
  readonly share = new CapShare()
  cap: number | undefined
  used = 0
  /** Requests in flight of each lane that has any or waits. */
  readonly lanes = new Map<HostWaiter, number>()
  readonly waiting = new Set<HostWaiter>()

  constructor(tenant: string, host: CappedHost) {
    this.tenant = tenant
    this.host = host
  }

  /** True where it counts requests to this host. */
  counts({ host, tenant }: SharedHost): boolean {
    return host === this.host.name && tenant === this.tenant
  }

  /** Counts one request of a lane. */
  take(lane: HostWaiter): void {
    this.#begin()
    this.used++
    this.host.used++
    this.lanes.set(lane, (this.lanes.get(lane) ?? 0) + 1)
  }

  /** Called when a request of a lane has ended: the next lane gets its turn. */
  release(lane: HostWaiter): void {
    this.used--
    this.host.used--
    this.lanes.set(lane, (this.lanes.get(lane) ?? 1) - 1)
    this.forgetIdle(lane)
    this.host.next()
  }

  wait(lane: HostWaiter): void {
    this.#begin()
    this.waiting.add(lane)
    if (!this.lanes.has(lane)) this.lanes.set(lane, 0)
  }

  /** Forgets a lane that has nothing in flight and does not wait. */
  forgetIdle(lane: HostWaiter): void {
    if (this.lanes.get(lane) !== 0 || this.waiting.has(lane)) return
    this.lanes.delete(lane)
    if (this.lanes.size === 0) this.host.active--
  }

  #begin(): void {
    if (this.lanes.size === 0) this.host.active++
  }
}

/** What the lanes of a worker have in flight to one host. */
class CappedHost {
  readonly name: string
  readonly #limits: HostLimits
  readonly #share = new CapShare()
  /** By tenant; the one whose turn comes next is first. */
  readonly #lines = new Map<string, HostLine>()
  #cap: number | undefined
  #isGiving = false
  used = 0
  /** Number of tenants with requests in flight or lanes that wait. */
  active = 0

  constructor(name: string, limits: HostLimits) {
    this.name = name
    this.#limits = limits
  }

  /** Returns a tenant's line, with the caps that hold now. */
  lineOf({ systemCap, tenant, tenantCap }: SharedHost): HostLine {
    const line = this.#lines.get(tenant) ?? new HostLine(tenant, this)
    this.#lines.set(tenant, line)
    this.#cap = systemCap
    line.cap = tenantCap
    return line
  }

  /** Returns how many requests the tenant's endpoints may have in flight from this worker. */
  shareOf(line: HostLine): number {
    const { hosts, owners } = this.#limits
    const ofTenant = line.share.of(line.cap, () => hosts.of(line.tenant, this.name), owners)
    return Math.min(ofTenant, this.#shareOfAll())
  }

  /** True where the host takes no more requests of the tenant from this worker. */
  isFull(line: HostLine): boolean {
    return line.used >= this.shareOf(line) || this.used >= this.#shareOfAll()
  }

  /** True where one more request of a lane may begin. */
  mayStart(line: HostLine, lane: HostWaiter): boolean {
    if (!this.#mayTenantStart(line)) return false
    const lanes = line.lanes.size + Number(!line.lanes.has(lane))
    return mayTakeMore(line.lanes.get(lane) ?? 0, lanes, line.used, this.shareOf(line))
  }

  /** Gives waiting lanes their turns while the host takes more: tenants in turn, lanes in order. */
  next(): void {
    // A request that begins may end at once and call this again: this call goes on with its place.
    if (this.#isGiving) return
    this.#isGiving = true
    try {
      while (this.#giveTurn());
    } finally {
      this.#isGiving = false
    }
  }

  /** Forgets tenants without requests. Returns true where none is left. */
  dropIdle(): boolean {
    for (const line of this.#lines.values())
      if (line.lanes.size === 0) this.#lines.delete(line.tenant)
    return this.#lines.size === 0
  }

  /** Offers a turn to one lane. Returns false where none may begin. */
  #giveTurn(): boolean {
    if (this.used >= this.#shareOfAll()) return false
    for (const line of this.#lines.values()) {
      // The same for each of its lanes, of which thousands may wait.
      if (line.waiting.size === 0 || !this.#mayTenantStart(line)) continue
      for (const lane of line.waiting) {
        if (!this.mayStart(line, lane)) continue
        this.#lines.delete(line.tenant)
        this.#lines.set(line.tenant, line)
        line.waiting.delete(lane)
        lane.turn()
        line.forgetIdle(lane)
        return true
      }
    }
    return false
  }

  /** True where one more request of some lane of a tenant may begin. */
  #mayTenantStart(line: HostLine): boolean {
    if (this.isFull(line)) return false
    const tenants = this.active + Number(line.lanes.size === 0)
    return mayTakeMore(line.used, tenants, this.used, this.#shareOfAll())
  }

  #shareOfAll(): number {
    const { hosts, owners } = this.#limits
    return this.#share.of(this.#cap, () => hosts.of(undefined, this.name), owners)
  }
}

/**
 * Caps the requests of one worker to each host over several endpoints, in all its partitions. It
 * uses its share of a cap (`hostShare`). A lane that is refused waits in line, and has its turn when
 * a request to the host ends.
 */
export class HostLimits {
  readonly hosts: Pick<HostIndex, "of">
  owners: PartitionOwners = []
  readonly #capped = new Map<string, CappedHost>()

  constructor(hosts: Pick<HostIndex, "of">) {
    this.hosts = hosts
  }

  /**
   * Returns the line that one more request of a lane is to be counted in; undefined if none may
   * begin now, and the lane waits.
   */
  lineFor(shared: SharedHost, lane: HostWaiter): HostLine | undefined {
    const line = this.#lineOf(shared)
    if (line.host.mayStart(line, lane)) return line
    line.wait(lane)
    return undefined
  }

  /** Returns how many requests the endpoint's host takes from this worker, at least 1. */
  shareOf(shared: SharedHost): number {
    const line = this.#lineOf(shared)
    return line.host.shareOf(line)
  }

  /** True where the endpoint's host takes no more requests now. */
  isFull(shared: SharedHost): boolean {
    const line = this.#lineOf(shared)
    return line.host.isFull(line)
  }

  /** Notes the workers that may send in each partition. */
  assign(owners: PartitionOwners): void {
    this.owners = owners
  }

  /**
   * Gives waiting lanes what a share that has grown allows, and forgets idle hosts. Called at an
   * interval.
   */
  tick(): void {
    for (const [name, host] of this.#capped) {
      host.next()
      if (host.dropIdle()) this.#capped.delete(name)
    }
  }

  /** Number of hosts in memory: those asked for since the last tick, and those in use. */
  get size(): number {
    return this.#capped.size
  }

  #lineOf(shared: SharedHost): HostLine {
    const { host } = shared
    const known = this.#capped.get(host) ?? new CappedHost(host, this)
    this.#capped.set(host, known)
    return known.lineOf(shared)
  }
}
