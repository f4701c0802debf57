import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import type { LiveSource } from "./live-sources.ts"

/** How much a gateway takes at the same time. */
export interface AdmissionBounds {
  /**
   * Requests under way, from the end of the body to the answer. One tenant has at most half of them,
   * one source a quarter.
   */
  readonly requests: number
  /** Bytes of bodies in memory. One tenant has at most half of them, one source a quarter. */
  readonly bytes: number
  /** The broker is silent once a publish has gone unanswered for so long, ms. */
  readonly silentMs: number
}

export const defaultBounds: AdmissionBounds = {
  requests: 256,
  bytes: 48 * 1024 * 1024,
  silentMs: 2_000
}

/** How often a silent broker is tried with a request, ms. */
const probeEveryMs = 250

/** Why a request is not taken now, and for how long it should stay away, s. */
export interface NotNow {
  readonly outcome: "rate-limited" | "overloaded" | "broker-unavailable"
  readonly retryAfterS: number
}

const overloaded: NotNow = { outcome: "overloaded", retryAfterS: 1 }

/** Decides which requests are taken: by tenant and source before all, and by the broker's answers. */
export class Admission {
  readonly #bounds: AdmissionBounds
  readonly #tenants: Shares
  readonly #sources: Shares
  #silentSince: number | undefined
  #probedAt = 0
  #problem: string | undefined

  constructor(bounds: AdmissionBounds = defaultBounds) {
    this.#bounds = bounds
    this.#tenants = new Shares(bounds.requests)
    this.#sources = new Shares(bounds.requests, bounds.requests / 4)
  }

  get underWay(): number {
    return this.#tenants.total
  }

  /** Why what was tried last was not stored, one sentence; undefined if it was. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Says why a request would not be taken now, before its body is read. */
  refuses({ key, source }: Pick<LiveSource, "key" | "source">): NotNow | undefined {
    return this.#isSilentFor(timers.monotonicMs())
      ? this.#silent()
      : this.#sources.fits(key) && this.#tenants.fits(source.tenant)
        ? undefined
        : overloaded
  }

  /** Takes a request whose body is there, or says why not. What is taken is given back with `end`. */
  begin(live: Pick<LiveSource, "key" | "source">): NotNow | undefined {
    const notNow = this.refuses(live)
    if (notNow !== undefined) return notNow
    this.#sources.take(live.key)
    this.#tenants.take(live.source.tenant)
    return undefined
  }

  end({ key, source }: Pick<LiveSource, "key" | "source">): void {
    this.#tenants.give(source.tenant)
    this.#sources.give(key)
  }

  /**
   * Says why a request that was verified is not stored now. What anybody sends without a secret takes
   * none of a source's rate, and is no try whether the broker is back.
   */
  refusesToStore({ rate }: Pick<LiveSource, "rate">): NotNow | undefined {
    const now = timers.monotonicMs()
    if (this.#isSilentFor(now)) return this.#silent()
    if (rate !== undefined && !rate.take(now))
      return {
        outcome: "rate-limited",
        retryAfterS: Math.max(1, Math.ceil(rate.waitFor(now) / 1_000))
      }
    if (this.#silentSince !== undefined) this.#probedAt = now
    return undefined
  }

  /**
   * Notes that the broker answered.
   *
   * @param problem why it stores nothing, one sentence. (Default: it stores)
   */
  answered(problem?: string): void {
    this.#silentSince = undefined
    this.#problem = problem
  }

  /**
   * Notes that the broker did not answer.
   *
   * @param problem what it did not answer, one sentence.
   */
  unanswered(problem: string): void {
    this.#silentSince ??= timers.monotonicMs()
    this.#probedAt = timers.monotonicMs()
    this.#problem = problem
  }

  /** True while the broker is silent, and was tried just now. */
  #isSilentFor(now: number): boolean {
    return this.#silentSince !== undefined && now - this.#probedAt < probeEveryMs
  }

  #silent(): NotNow {
    return { outcome: "broker-unavailable", retryAfterS: Math.ceil(this.#bounds.silentMs / 1_000) }
  }
}
