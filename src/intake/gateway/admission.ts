import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import type { LiveSource } from "./live-sources.ts"

/** How much a gateway takes at the same time. */
export interface AdmissionBounds {
  /** Requests under way. One tenant has at most half of them, one source a quarter. */
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

/** Decides which requests are taken: by tenant and source before all, and by the broker's answers. */
export class Admission {
  readonly #bounds: AdmissionBounds
  readonly #tenants: Shares
  readonly #sources: Shares
  readonly #tenantBytes: Shares
  readonly #sourceBytes: Shares
  #silentSince: number | undefined
  #probedAt = 0

  constructor(bounds: AdmissionBounds = defaultBounds) {
    this.#bounds = bounds
    const { bytes, requests } = bounds
    this.#tenants = new Shares(requests)
    this.#sources = new Shares(requests, requests / 4)
    this.#tenantBytes = new Shares(bytes)
    this.#sourceBytes = new Shares(bytes, bytes / 4)
  }

  get underWay(): number {
    return this.#tenants.total
  }

  /** True while the broker answers nothing. */
  get isSilent(): boolean {
    return this.#silentSince !== undefined
  }

  /** Takes a request, or says why not. What is taken must be given back with `end`. */
  begin({ key, rate, source }: LiveSource): NotNow | undefined {
    const now = timers.monotonicMs()
    if (this.#silentSince !== undefined) {
      if (now - this.#probedAt < probeEveryMs)
        return { outcome: "broker-unavailable", retryAfterS: this.#bounds.silentMs / 1_000 }
      this.#probedAt = now
    }
    if (!this.#sources.take(key)) return { outcome: "overloaded", retryAfterS: 1 }
    if (!this.#tenants.take(source.tenant)) {
      this.#sources.give(key)
      return { outcome: "overloaded", retryAfterS: 1 }
    }
    if (rate === undefined || rate.take(now)) return undefined
    const retryAfterS = Math.max(1, Math.ceil(rate.waitFor(now) / 1_000))
    this.end({ key, source })
    return { outcome: "rate-limited", retryAfterS }
  }

  end({ key, source }: Pick<LiveSource, "key" | "source">): void {
    this.#tenants.give(source.tenant)
    this.#sources.give(key)
  }

  /** Takes room for bytes of a body. Returns false if there is none. */
  takeBytes({ key, source }: LiveSource, bytes: number): boolean {
    if (!this.#sourceBytes.take(key, bytes)) return false
    if (this.#tenantBytes.take(source.tenant, bytes)) return true
    this.#sourceBytes.give(key, bytes)
    return false
  }

  giveBytes({ key, source }: LiveSource, bytes: number): void {
    if (bytes === 0) return
    this.#tenantBytes.give(source.tenant, bytes)
    this.#sourceBytes.give(key, bytes)
  }

  /** Notes that the broker answered a publish, or refused it. */
  answered(): void {
    this.#silentSince = undefined
  }

  /** Notes that a publish went unanswered. */
  unanswered(): void {
    this.#silentSince ??= timers.monotonicMs()
    this.#probedAt = timers.monotonicMs()
  }
}
