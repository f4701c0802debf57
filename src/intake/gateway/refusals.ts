import type { RefusingSource } from "../../cluster/gateway-reports.ts"
import type { SourceName } from "../../domain/source.ts"
import { sourceKey } from "../../domain/source.ts"
import { timers } from "../../time/timers.ts"

/** Requests in a row that are refused before it is told. */
const toldAfter = 10
/** How often the same is told again, ms. */
const toldEveryMs = 60 * 60_000
/** A refusal counts for so long, ms: a stranger's single guesses are no news. */
const rememberedMs = 10 * 60_000
/** Sources of which refusals are known. Only sources that there are have any. */
const maxSources = 10_000
/** Sources that are named as refusing, of one tenant and of all. */
const maxNamedOfTenant = 5
const maxNamed = 100

interface Refused {
  readonly name: SourceName
  /** Requests in a row that were refused, and those of them that were not verified. */
  inRow: number
  unverified: number
  /** When the first of the row was refused, ms since the epoch. */
  since: number
  /** When something was refused last, ms of the monotonic clock. */
  lastAt: number
  /** Why, once it is news. */
  reason: string | undefined
  /** When it was told last, by what it was, ms of the monotonic clock. */
  readonly toldAt: Map<string, number>
}

/**
 * Knows which sources refuse what comes for a while: their secret is another one, or bodies are larger
 * than what is taken. Each of it is told once an hour.
 */
export class Refusals {
  readonly #sources = new Map<string, Refused>()

  /**
   * Notes that a request was not verified. Returns what to tell, as a text; undefined for nothing.
   *
   * @param text what it says of itself, one sentence.
   */
  unauthorized(
    name: SourceName,
    { problem, text }: { readonly problem: string; readonly text: string }
  ): string | undefined {
    const refused = this.#of(name)
    const now = this.#note(refused)
    refused.unverified++
    if (refused.unverified < toldAfter) return undefined
    const which = refused.unverified === refused.inRow ? " in a row" : ""
    refused.reason = `${refused.unverified} requests${which} were not verified, the last one for ${problem}: ${text.replace(/\.$/, "")}`
    return this.#isDue(refused, "unauthorized", now) ? refused.reason : undefined
  }

  /**
   * The same of a request that is too large. One is news, as its provider may not send it ten times.
   *
   * @param isVerified false where it was refused before its body was read.
   */
  tooLarge(name: SourceName, max: number, isVerified: boolean): string | undefined {
    const refused = this.#of(name)
    const now = this.#note(refused)
    refused.reason = `a request is larger than the ${max} bytes that an event may have${isVerified ? "" : "; it was refused unread, so that anybody may have sent it"}`
    return this.#isDue(refused, "too-large", now) ? refused.reason : undefined
  }

  /** Notes that a request was verified. */
  verified(name: SourceName): void {
    const refused = this.#sources.get(sourceKey(name))
    if (refused === undefined) return
    refused.inRow = 0
    refused.unverified = 0
    refused.reason = undefined
  }

  /**
   * Names the sources that refuse what comes now: some of each tenant.
   *
   * @param isThere false for a source that was removed.
   */
  refusing(isThere: (key: string) => boolean): ReadonlyArray<RefusingSource> {
    const now = timers.monotonicMs()
    const named: Array<RefusingSource> = []
    const ofTenants = new Map<string, number>()
    for (const [key, { lastAt, name, reason, since }] of this.#sources) {
      if (reason === undefined || now - lastAt > rememberedMs || !isThere(key)) continue
      const count = ofTenants.get(name.tenant) ?? 0
      if (count >= maxNamedOfTenant) continue
      ofTenants.set(name.tenant, count + 1)
      named.push({ tenant: name.tenant, source: name.id, reason, since })
      if (named.length === maxNamed) break
    }
    return named
  }

  /** Notes that a request was refused. Returns the time, ms of the monotonic clock. */
  #note(refused: Refused): number {
    const now = timers.monotonicMs()
    if (refused.inRow === 0 || now - refused.lastAt > rememberedMs) {
      refused.inRow = 0
      refused.unverified = 0
      refused.reason = undefined
      refused.since = timers.wallMs()
    }
    refused.inRow++
    refused.lastAt = now
    return now
  }

  #isDue(refused: Refused, what: string, now: number): boolean {
    const toldAt = refused.toldAt.get(what)
    if (toldAt !== undefined && now - toldAt < toldEveryMs) return false
    refused.toldAt.set(what, now)
    return true
  }

  #of({ id, tenant }: SourceName): Refused {
    const name = { tenant, id }
    const key = sourceKey(name)
    const known = this.#sources.get(key)
    if (known !== undefined) return known
    if (this.#sources.size >= maxSources) this.#sources.clear()
    const made: Refused = {
      ...{
        name,
        inRow: 0,
        unverified: 0,
        since: 0,
        lastAt: Number.NEGATIVE_INFINITY,
        reason: undefined
      },
      toldAt: new Map()
    }
    this.#sources.set(key, made)
    return made
  }
}
