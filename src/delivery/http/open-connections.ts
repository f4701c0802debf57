import type { Socket } from "node:net"
import { allowanceOf } from "../../policy/tenant-share.ts"

/**
 * Connections to receivers that may be open, as a multiple of the requests that may be in flight.
 * Those of requests in flight count, too; the others are kept alive for the next request.
 */
const openPerRequest = 4

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
   * @param maxInFlight requests that may be in flight.
   * @param hasOthers true where several tenants have endpoints.
   */
  constructor(maxInFlight: number, hasOthers: () => boolean) {
    this.#max = openPerRequest * maxInFlight
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
