import { timers } from "../../time/timers.ts"

/** Requests in a row that are refused before it is told. */
const toldAfter = 10
/** How often the same is told again, ms. */
const toldEveryMs = 60 * 60_000
/** A refusal counts for so long, ms: a stranger's single guesses are no news. */
const rememberedMs = 10 * 60_000
/** Sources of which refusals are known. */
const maxSources = 10_000

interface Refused {
  inRow: number
  lastAt: number
  /** When it was told last, by what it was, ms of the monotonic clock. */
  readonly toldAt: Map<string, number>
}

/**
 * Tells when a source refuses what comes for a while: its secret is another one, or its bodies are
 * larger than what is taken. Each of it is told once an hour.
 */
export class Refusals {
  readonly #sources = new Map<string, Refused>()

  /** Returns what to tell, as a sentence; undefined for nothing. */
  unauthorized(key: string, problem: string): string | undefined {
    const now = timers.monotonicMs()
    const refused = this.#of(key)
    refused.inRow = now - refused.lastAt > rememberedMs ? 1 : refused.inRow + 1
    refused.lastAt = now
    if (refused.inRow < toldAfter || !this.#isDue(refused, "unauthorized", now)) return undefined
    return `${refused.inRow} requests in a row were not verified, the last one for ${problem}`
  }

  /** The same of a request that is too large. */
  tooLarge(key: string, max: number): string | undefined {
    const isDue = this.#isDue(this.#of(key), "too-large", timers.monotonicMs())
    return isDue ? `a request is larger than the ${max} bytes that an event may have` : undefined
  }

  /** Notes that a request was verified. */
  verified(key: string): void {
    const refused = this.#sources.get(key)
    if (refused !== undefined) refused.inRow = 0
  }

  #isDue(refused: Refused, what: string, now: number): boolean {
    const toldAt = refused.toldAt.get(what)
    if (toldAt !== undefined && now - toldAt < toldEveryMs) return false
    refused.toldAt.set(what, now)
    return true
  }

  #of(key: string): Refused {
    const known = this.#sources.get(key)
    if (known !== undefined) return known
    if (this.#sources.size >= maxSources) this.#sources.clear()
    const made: Refused = { inRow: 0, lastAt: Number.NEGATIVE_INFINITY, toldAt: new Map() }
    this.#sources.set(key, made)
    return made
  }
}
