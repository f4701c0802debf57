import { tenantOfKey } from "../../domain/endpoint.ts"
import type { Room } from "../../policy/backlog-quota.ts"
import { isCrowded, isOverQuota } from "../../policy/backlog-quota.ts"

interface TenantUse {
  bytes: number
  /** By endpoint key. */
  readonly endpoints: Map<string, number>
}

/** What a reading of the streams found, bytes. */
interface RoomReading extends Room {
  /** By endpoint key; empty unless more than a quarter of the room is taken. */
  readonly byEndpoint: ReadonlyMap<string, number>
}

const partOf = ({ bytes, maxBytes }: Room, part: number): Room => ({
  bytes,
  maxBytes: maxBytes === undefined ? undefined : maxBytes * part
})

/** True where shares of half of a room count, so that readings have to count by endpoint. */
export const isCounted = (room: Room): boolean => isCrowded(partOf(room, 1 / 2))

/**
 * What endpoints take of a room that tenants share: as the last reading found it, and what was
 * stored since. Answers in constant time.
 */
export class TenantRoom {
  #bytes = 0
  #maxBytes: number | undefined
  #tenants = new Map<string, TenantUse>()

  /** True where shares count. */
  get isCrowded(): boolean {
    return isCrowded({ bytes: this.#bytes, maxBytes: this.#maxBytes })
  }

  /** True where readings have to count by endpoint. */
  get isCounted(): boolean {
    return isCounted({ bytes: this.#bytes, maxBytes: this.#maxBytes })
  }

  /** Starts again from a reading. */
  read({ byEndpoint, bytes, maxBytes }: RoomReading): void {
    this.#bytes = bytes
    this.#maxBytes = maxBytes
    this.#tenants = new Map()
    for (const [key, bytes] of byEndpoint) this.#add(key, bytes)
  }

  /** Changes what there is. */
  resize(maxBytes: number | undefined): void {
    this.#maxBytes = maxBytes
  }

  /** Counts what was stored for an endpoint since the last reading, or has left (negative), bytes. */
  stored(key: string, bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes + bytes)
    this.#add(key, bytes)
  }

  /**
   * True where an endpoint may take no more.
   *
   * @param part of the room, for what may take less of it: a half at least. (Default: all)
   * @param isOnlyTenant true where there is no other tenant. (Default: false)
   */
  isFull(key: string, part: 0.5 | 1 = 1, isOnlyTenant = false): boolean {
    const room = partOf({ bytes: this.#bytes, maxBytes: this.#maxBytes }, part)
    if (!isCrowded(room)) return false
    const tenant = this.#tenants.get(tenantOfKey(key))
    const endpointBytes = tenant?.endpoints.get(key)
    const newEndpoint = endpointBytes === undefined ? 1 : 0
    return isOverQuota(room, {
      endpointBytes: endpointBytes ?? 0,
      tenantBytes: tenant?.bytes ?? 0,
      endpoints: (tenant?.endpoints.size ?? 0) + newEndpoint,
      tenants: this.#tenants.size + (tenant === undefined ? 1 : 0),
      isOnlyTenant
    })
  }

  #add(key: string, bytes: number): void {
    const tenant = tenantOfKey(key)
    const use = this.#tenants.get(tenant) ?? { bytes: 0, endpoints: new Map() }
    this.#tenants.set(tenant, use)
    use.bytes = Math.max(0, use.bytes + bytes)
    const left = Math.max(0, (use.endpoints.get(key) ?? 0) + bytes)
    // Who takes nothing any more does not count as one who shares.
    if (left > 0) use.endpoints.set(key, left)
    else use.endpoints.delete(key)
    if (use.endpoints.size === 0) this.#tenants.delete(tenant)
  }
}
