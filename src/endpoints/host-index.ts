import { endpointHash } from "../domain/names.ts"

/** An endpoint as the index of hosts needs it. */
interface HostedEndpoint {
  /** `<tenant>.<endpoint>` */
  readonly key: string
  /** Its configuration as the bucket holds it; it is known to decode. */
  readonly text: string
}

/** Returns the host name of a URL, in lower case, without its port and without a last dot. */
export const hostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, "")

/** The host of an endpoint that takes deliveries; undefined for one that is disabled or paused. */
const hostIn = (text: string): string | undefined => {
  const { disabled, paused, url }: { disabled?: unknown; paused?: unknown; url?: unknown } =
    JSON.parse(text)
  return disabled === undefined && paused === undefined ? hostOf(String(url)) : undefined
}

/** The endpoints of one host. */
export interface HostEndpoints {
  /** The hash of each, which tells its partition. */
  readonly hashes: ReadonlyArray<number>
  /** Changes with them. */
  readonly version: number
}

interface IndexedHost extends HostEndpoints {
  readonly hashes: Array<number>
  version: number
}

const none: HostEndpoints = { hashes: [], version: 0 }

/**
 * Which endpoints share a host, where its requests are capped. Without a cap it holds nothing: to
 * index 100,000 endpoints takes half a second.
 */
export class HostIndex {
  /**
   * By the tenant whose requests to one host are capped, and by host; undefined stands for the system.
   */
  readonly #capped = new Map<string | undefined, Map<string, IndexedHost>>()
  #versions = 0

  /**
   * Returns a host's endpoints, without those that are disabled or paused.
   *
   * @param tenant whose endpoints; undefined for those of all tenants.
   */
  of(tenant: string | undefined, host: string): HostEndpoints {
    return this.#capped.get(tenant)?.get(host) ?? none
  }

  /**
   * Begins to index the hosts of a tenant, or of the system (undefined).
   *
   * @param endpoints all that it has.
   */
  cap(whose: string | undefined, endpoints: Iterable<HostedEndpoint>): void {
    if (this.#capped.has(whose)) return
    this.#capped.set(whose, new Map())
    for (const endpoint of endpoints) this.#addTo(whose, endpoint, hostIn(endpoint.text))
  }

  /** Ends what `cap` began. */
  uncap(whose: string | undefined): void {
    this.#capped.delete(whose)
  }

  add(endpoint: HostedEndpoint): void {
    const owners = this.#cappersOf(endpoint)
    if (owners.length === 0) return
    const host = hostIn(endpoint.text)
    for (const whose of owners) this.#addTo(whose, endpoint, host)
  }

  remove(endpoint: HostedEndpoint): void {
    const owners = this.#cappersOf(endpoint)
    if (owners.length === 0) return
    const host = hostIn(endpoint.text)
    for (const whose of owners) this.#removeFrom(whose, endpoint, host)
  }

  #cappersOf({ key }: HostedEndpoint): ReadonlyArray<string | undefined> {
    if (this.#capped.size === 0) return uncapped
    const tenant = key.slice(0, key.indexOf("."))
    return [undefined, tenant].filter((whose) => this.#capped.has(whose))
  }

  #addTo(whose: string | undefined, { key }: HostedEndpoint, host: string | undefined): void {
    const hosts = this.#capped.get(whose)
    if (host === undefined || hosts === undefined) return
    const known = hosts.get(host)
    const version = ++this.#versions
    if (known === undefined) hosts.set(host, { hashes: [endpointHash(key)], version })
    else {
      known.hashes.push(endpointHash(key))
      known.version = version
    }
  }

  #removeFrom(whose: string | undefined, { key }: HostedEndpoint, host: string | undefined): void {
    const hosts = this.#capped.get(whose)
    if (host === undefined || hosts === undefined) return
    const known = hosts.get(host)
    const at = known?.hashes.indexOf(endpointHash(key)) ?? -1
    if (known === undefined || at < 0) return
    known.hashes.splice(at, 1)
    known.version = ++this.#versions
    if (known.hashes.length === 0) hosts.delete(host)
  }
}

const uncapped: ReadonlyArray<string | undefined> = []
