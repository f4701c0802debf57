import { Effect, Schema } from "effect"
import type { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { fetchedHeader, type IncomingEvent } from "../domain/intake.ts"
import { maxNamedMissing, type Reconciliation } from "../domain/reconciliation.ts"
import type { SourceName } from "../domain/source.ts"
import { keptHeaders } from "../intake/kept-headers.ts"
import { type NotStored, storeIncoming } from "../intake/store-incoming.ts"
import { type Asked, type Carried, isoTime, type Listed } from "../providers/listings/listing.ts"
import type { Provider } from "../providers/provider.ts"
import { timers } from "../time/timers.ts"
import type { Arrival } from "./arrivals.ts"

/** Concurrent look-ups in INTAKE. */
const maxConcurrentLookups = 16
/** Ids of missing events that are remembered, so that each counts once if it is listed twice. */
const maxRemembered = 100_000
/** How often an event is stored again of which the broker does not say whether it is. */
const maxStores = 5
const storePauseMs = 500

/** What becomes of a missing event. */
export type Obtained =
  | { readonly as: "carried"; readonly carried: Carried }
  /** The provider sends it again. */
  | { readonly as: "asked" }
  /** It cannot be had; `why` is one sentence. */
  | { readonly as: "not-had"; readonly why: string }

/** One event that did not come in. */
export interface Missing {
  readonly id: string
  readonly type?: string | undefined
  /** ms since the epoch, by the provider's clock. */
  readonly at?: number | undefined
  /** `late`: it came in meanwhile. `found`: nothing was done, as was asked for. */
  readonly became: "fetched" | "asked" | "not-had" | "late" | "found"
  readonly why?: string | undefined
}

type Became = Pick<Missing, "became" | "why">

/** A list is not of the shape that its provider documents. */
export class UnreadableList extends Schema.TaggedError<UnreadableList>()("UnreadableList", {
  message: Schema.String
}) {}

interface ComparisonOptions<E, R> {
  readonly source: SourceName
  readonly asked: Pick<Asked, "since" | "until">
  /** Reads what is fetched as if it had come in. */
  readonly read: Provider["read"]
  readonly isWanted: (type: string | undefined) => boolean
  readonly lookUp: (listed: Listed) => Effect.Effect<Arrival, BrokerError, Broker>
  /** Undefined where missing events are only counted. */
  readonly obtain: ((listed: Listed) => Effect.Effect<Obtained, E, R>) | undefined
  /** Hears of each missing one. */
  readonly onMissing: (missing: Missing) => Effect.Effect<void>
}

/** Compares what a provider lists with what came in, page by page. */
export class Comparison<E, R> {
  readonly #options: ComparisonOptions<E, R>
  readonly #missing = new Set<string>()
  /** Those of the page before: pages of a list that grows meanwhile overlap. */
  #before: ReadonlySet<string> = new Set()
  readonly #missingIds: Array<string> = []
  #listed = 0
  #present = 0
  #fetched = 0
  #askedFor = 0
  #missed = 0
  #tooOld = 0
  #problem: string | undefined

  constructor(options: ComparisonOptions<E, R>) {
    this.#options = options
  }

  /** What was found up to now. */
  get found(): Reconciliation {
    const { since, until } = this.#options.asked
    return {
      ...{ since, until, listed: this.#listed, present: this.#present, missing: this.#missed },
      ...{ fetched: this.#fetched, asked: this.#askedFor, tooOld: this.#tooOld },
      missingIds: this.#missingIds,
      ...(this.#problem === undefined ? {} : { problem: this.#problem })
    }
  }

  /** Takes a page, and obtains what is missing of it. */
  readonly take = Effect.fnUntraced({ self: this }, function* (page: ReadonlyArray<Listed>) {
    const { asked, isWanted, lookUp } = this.#options
    const ids = new Set<string>()
    const due: Array<Listed> = []
    for (const one of page) {
      const { at, id, type } = one
      if (id === "") return yield* new UnreadableList({ message: "an event of the list has no id" })
      if (ids.has(id) || this.#before.has(id) || this.#missing.has(id)) continue
      ids.add(id)
      if (at !== undefined && (at < asked.since || at > asked.until)) continue
      if (isWanted(type)) due.push(one)
    }
    this.#before = ids
    const arrivals = yield* Effect.forEach(due, lookUp, {
      concurrency: maxConcurrentLookups
    })
    this.#listed += due.length
    for (const [place, one] of due.entries()) {
      const arrival = arrivals[place]
      if (arrival === "present") this.#present++
      else if (arrival === "unknown") this.#tooOld++
      else {
        if (this.#missing.size < maxRemembered) this.#missing.add(one.id)
        if (arrival === "unreported") yield* this.#report(one, { became: "fetched" })
        else yield* this.#miss(one)
      }
    }
  })

  readonly #miss = Effect.fnUntraced({ self: this }, function* (listed: Listed) {
    const { obtain } = this.#options
    const became: Became =
      obtain === undefined
        ? { became: "found" }
        : yield* this.#became(listed, yield* obtain(listed))
    if (became.became === "late") this.#present++
    else yield* this.#report(listed, became)
  })

  /** Counts one that never came in. */
  readonly #report = Effect.fnUntraced({ self: this }, function* (listed: Listed, became: Became) {
    const { onMissing } = this.#options
    const { at, id, type } = listed
    this.#missed++
    if (became.became === "fetched") this.#fetched++
    if (became.became === "asked") this.#askedFor++
    if (became.became === "not-had") this.#problem ??= `${id}: ${became.why}`
    if (this.#missingIds.length < maxNamedMissing) this.#missingIds.push(id)
    yield* onMissing({ id, type, at, ...became })
  })

  readonly #became = Effect.fnUntraced(
    { self: this },
    function* ({ id }: Listed, obtained: Obtained): Effect.fn.Return<Became, NotStored, Broker> {
      const { read, source } = this.#options
      if (obtained.as === "asked") return { became: "asked" }
      if (obtained.as === "not-had") return { became: "not-had", why: obtained.why }
      const { body, headers } = obtained.carried
      const reading = read({ method: "POST", url: "", headers, body })
      if (!reading.ok) return { became: "not-had", why: reading.text }
      const [event, ...others] = reading.events
      if (event === undefined || others.length > 0)
        return { became: "not-had", why: `it is ${reading.events.length} events` }
      const incoming: IncomingEvent = {
        ...{ tenant: source.tenant, source: source.id, id, type: event.type, body: event.body },
        contentType: event.contentType,
        headers: [[fetchedHeader, isoTime(timers.wallMs())], ...keptHeaders({ headers })]
      }
      const stored = yield* store(incoming).pipe(
        Effect.catchIf(
          ({ reason }) => reason === "invalid" || reason === "too-large",
          ({ text }) => Effect.succeed({ text })
        )
      )
      if (typeof stored !== "string") return { became: "not-had", why: stored.text }
      return { became: stored === "stored" ? "fetched" : "late" }
    }
  )
}

/** Stores an event, again and again while it is not known whether it is stored. */
const store = Effect.fnUntraced(function* (event: IncomingEvent) {
  for (let tries = 1; ; tries++) {
    const stored = yield* Effect.result(storeIncoming(event))
    // Where an answer got lost, what is stored by then is what was sent before.
    if (stored._tag === "Success")
      return tries > 1 && stored.success.as === "repeated" ? "stored" : stored.success.as
    if (stored.failure.reason !== "unanswered" || tries === maxStores) return yield* stored.failure
    yield* Effect.sleep(storePauseMs)
  }
})
