import { Effect, Result } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { FollowedEntries } from "../../broker/bucket-follow.ts"
import { followBucket } from "../../broker/bucket-follow.ts"
import type { Source } from "../../domain/source.ts"
import { type Rate, TokenBucket } from "../../policy/rate.ts"
import type { Provider } from "../../providers/provider.ts"
import { timers } from "../../time/timers.ts"
import type { FetchCertificate } from "../source-provider.ts"
import { providerOf, secretsHoldUntil } from "../source-provider.ts"
import { decodeSource } from "../source-store.ts"

/** A source as a gateway uses it. */
export interface LiveSource {
  readonly source: Source
  /** `<tenant>.<source>` */
  readonly key: string
  /** Undefined where the settings make none: another version of Petrel wrote them. */
  readonly provider: Provider | undefined
  readonly rate: TokenBucket | undefined
  /** When a secret stops to hold, ms since the epoch. */
  readonly until: number | undefined
}

const isSameRate = (a: Source["rate"], b: Source["rate"]): boolean =>
  a?.perSecond === b?.perSecond && a?.burst === b?.burst

/** @param before the limit until now: a change does not fill it. */
const limitOf = (rate: Rate, before: TokenBucket | undefined): TokenBucket => {
  const now = timers.monotonicMs()
  return new TokenBucket(rate, now, before?.level(now))
}

/** @param before the source until now. */
const live = (key: string, source: Source, certificate: FetchCertificate, before?: LiveSource) => {
  const now = timers.wallMs()
  const provider = providerOf(source, now, certificate)
  const one: LiveSource = {
    source,
    key,
    provider: Result.getOrUndefined(provider),
    rate: isSameRate(source.rate, before?.source.rate)
      ? before?.rate
      : source.rate && limitOf(source.rate, before?.rate),
    until: secretsHoldUntil(source, now)
  }
  return one
}

/** The sources that there are, by their keys. */
export class SourceTable implements FollowedEntries {
  readonly #certificate: FetchCertificate
  readonly #sources = new Map<string, LiveSource>()
  readonly #unreadable = new Set<string>()

  constructor(certificate: FetchCertificate) {
    this.#certificate = certificate
  }

  hear(key: string, text: string | undefined): void {
    const source = text === undefined || text === "" ? undefined : decodeSource(key, text)
    const before = this.#sources.get(key)
    this.#sources.delete(key)
    this.#unreadable.delete(key)
    if (source === undefined) return
    if (Result.isFailure(source)) this.#unreadable.add(key)
    else this.#sources.set(key, live(key, source.success, this.#certificate, before))
  }

  get size(): number {
    return this.#sources.size
  }

  /** True for a source that there is, and that another version of Petrel wrote. */
  isUnreadable(key: string): boolean {
    return this.#unreadable.has(key)
  }

  /** @param now ms since the epoch. */
  get(key: string, now: number): LiveSource | undefined {
    const found = this.#sources.get(key)
    if (found?.until === undefined || found.until > now) return found
    const after = live(key, found.source, this.#certificate, found)
    this.#sources.set(key, after)
    return after
  }
}

/** Pause between questions whether all sources are known, ms. */
const lagMs = 10_000

/** Follows the sources until the scope closes. Returns once all are known. */
export const followSources = (certificate: FetchCertificate) =>
  Effect.flatMap(Broker, ({ names }) =>
    followBucket({ bucket: names.buckets.sources, lagMs }, () => new SourceTable(certificate))
  )
