import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import type { LiveSource } from "./live-sources.ts"

/** A body that has come for so long, ms, loses its room to another one. A provider's takes less. */
const patientMs = 1_000

/** The room of one body. */
export interface BodyPlace {
  /** Takes room for further bytes. Returns false if there is none. */
  readonly take: (bytes: number) => boolean
  /** The body is whole: it keeps its room until it is given back. */
  readonly finish: () => void
  /** Gives back all that it has taken. */
  readonly give: () => void
}

interface Unfinished {
  readonly source: string
  readonly began: number
  readonly cancel: () => void
}

/**
 * Bounds the bytes of bodies in memory: of one tenant half, of one source a quarter. Where there is no
 * room, the oldest body that is still coming is cut off: who sends slowly keeps nobody out.
 */
export class BodyRoom {
  readonly #tenants: Shares
  readonly #sources: Shares
  readonly #unfinished = new Set<Unfinished>()

  /** @param bytes in all. */
  constructor(bytes: number) {
    this.#tenants = new Shares(bytes)
    this.#sources = new Shares(bytes, bytes / 4)
  }

  /** Bytes that are in memory. */
  get used(): number {
    return this.#tenants.total
  }

  /** @param cancel is called once where the body loses its room. It gives the room back. */
  open(live: Pick<LiveSource, "key" | "source">, cancel: () => void): BodyPlace {
    const { key, source } = live
    const own: Unfinished = { source: key, began: timers.monotonicMs(), cancel }
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
          const slow = this.#slowest(own)
          if (slow === undefined) return false
          this.#unfinished.delete(slow)
          slow.cancel()
        }
        taken += bytes
        return true
      },
      finish: () => {
        this.#unfinished.delete(own)
      },
      give: () => {
        this.#unfinished.delete(own)
        if (taken > 0) {
          this.#tenants.give(source.tenant, taken)
          this.#sources.give(key, taken)
        }
        taken = 0
      }
    }
  }

  /** The body that has been coming for longest, of the same source before others. */
  #slowest(own: Unfinished): Unfinished | undefined {
    const before = timers.monotonicMs() - patientMs
    let oldest: Unfinished | undefined
    for (const one of this.#unfinished) {
      if (one.began > before) break
      if (one === own) continue
      if (one.source === own.source) return one
      oldest ??= one
    }
    return oldest
  }
}
