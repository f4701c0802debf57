import type { Linked } from "../../broker/intrusive-list.ts"
import { IntrusiveList } from "../../broker/intrusive-list.ts"
import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import type { LiveSource } from "./live-sources.ts"

/** A body that has come for so long, ms, loses its capacity to another one. A provider's takes less. */
const slowBodyMs = 1_000

/** The capacity of one body. */
export interface BodyPlace {
  /** Takes capacity for further bytes. Returns false if there is none. */
  readonly take: (bytes: number) => boolean
  /** The body is whole: it keeps its capacity until it is given back. */
  readonly finish: () => void
  /** Gives back all that it has taken. */
  readonly give: () => void
}

interface Unfinished extends Linked<Unfinished> {
  readonly tenant: string
  /** Key of its source. */
  readonly source: string
  /** When it began to come, ms of the monotonic clock. */
  readonly began: number
  readonly cancel: () => void
}

/**
 * Bounds the bytes of bodies in memory: at most half of them are of one tenant, and a quarter of one
 * source. A body that finds no capacity cuts off the oldest one that comes slowly, of its own source
 * first, so that slow senders keep nobody out. Of others it cuts off only what uses more than its
 * own tenant and source do: whoever fills its own share takes nobody else's.
 */
export class BodyCapacity {
  readonly #tenants: Shares
  readonly #sources: Shares
  /** In the order in which they began. */
  readonly #unfinished = new IntrusiveList<Unfinished>()

  /** @param bytes in all. */
  constructor(bytes: number) {
    this.#tenants = new Shares(bytes)
    this.#sources = new Shares(bytes, bytes / 4)
  }

  /** Bytes that are in memory. */
  get used(): number {
    return this.#tenants.total
  }

  /** @param cancel is called once if the body loses its capacity, which it gives back. */
  open(live: Pick<LiveSource, "key" | "source">, cancel: () => void): BodyPlace {
    const { key, source } = live
    const own: Unfinished = {
      ...{ tenant: source.tenant, source: key, began: timers.monotonicMs(), cancel },
      ...{ before: undefined, after: undefined }
    }
    this.#unfinished.add(own)
    let taken = 0
    const takeFree = (bytes: number): boolean => {
      if (!this.#sources.take(key, bytes)) return false
      if (this.#tenants.take(source.tenant, bytes)) return true
      this.#sources.give(key, bytes)
      return false
    }
    return {
      take: (bytes) => {
        while (!takeFree(bytes)) {
          const slow = this.#slowest(own, bytes)
          if (slow === undefined) return false
          this.#unfinished.remove(slow)
          slow.cancel()
        }
        taken += bytes
        return true
      },
      finish: () => {
        this.#unfinished.remove(own)
      },
      give: () => {
        this.#unfinished.remove(own)
        if (taken > 0) {
          this.#tenants.give(source.tenant, taken)
          this.#sources.give(key, taken)
        }
        taken = 0
      }
    }
  }

  /** Returns the body that is to be cut off for `bytes` more of another one; undefined for none. */
  #slowest(own: Unfinished, bytes: number): Unfinished | undefined {
    const before = timers.monotonicMs() - slowBodyMs
    const couldFit =
      this.#sources.couldHave(own.source, bytes) && this.#tenants.couldHave(own.tenant, bytes)
    let oldest: Unfinished | undefined
    for (const one of this.#unfinished) {
      if (one.began > before) break
      if (one === own) continue
      if (one.source === own.source) return one
      if (oldest === undefined && couldFit && this.#usesMore(one, own)) oldest = one
    }
    return oldest
  }

  #usesMore(one: Unfinished, than: Unfinished): boolean {
    return one.tenant === than.tenant
      ? this.#sources.usedBy(one.source) > this.#sources.usedBy(than.source)
      : this.#tenants.usedBy(one.tenant) > this.#tenants.usedBy(than.tenant)
  }
}
