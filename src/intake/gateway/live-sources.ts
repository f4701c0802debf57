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

/** What is logged when the broker refuses to show the sources, and when it shows them again. */
const hidden =
  "the broker does not show the sources: one that is added is answered with 404, and one that is removed or changed as before; give the user its permissions (see nats.conf); trying again"
const shownAgain = "the broker shows the sources again"

/**
 * Follows the sources until the scope closes. Returns once all are known: the sources, and whether
 * the broker refuses to show what has changed since.
 */
export const followSources = Effect.fnUntraced(function* (certificate: FetchCertificate) {
  const { names } = yield* Broker
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let isHidden = false
  const shown = (isShown: boolean) => {
    if (isHidden === !isShown) return
    isHidden = !isShown
    run(isShown ? Effect.logInfo(shownAgain) : Effect.logWarning(hidden))
  }
  const options = { bucket: names.buckets.sources, lagMs, shown }
  const sources = yield* followBucket(options, () => new SourceTable(certificate))
  return { sources, isHidden: () => isHidden }
})
