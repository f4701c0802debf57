import { randomBytes } from "node:crypto"
import { Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { millisOf } from "../../broker/stream-message.ts"
import { readEntry, writeValue } from "../../broker/values.ts"
import { keepLease, takeLease } from "../../cluster/work-lease.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { type Fact, factResult } from "../../domain/fact.ts"
import { readStory } from "../../history/configuration.ts"
import { decodeFact } from "../../history/delivery-facts.ts"
import {
  compareHistory,
  hasOtherEnd,
  type ReadingPosition
} from "../../history/reading-position.ts"
import { type Span, spansOf, type TracedFact, tracedFact } from "../../metrics/fact-spans.ts"
import { otlpSpans } from "../../metrics/otlp-json.ts"
import { makeOtlpPost, type OtlpTarget } from "../../metrics/otlp-post.ts"

/** Endpoints that are remembered; beyond, all are forgotten. */
const maxEndpoints = 10_000
/** Changes of an endpoint that are remembered. */
const maxChanges = 20

/** The origin that an endpoint's URL has from a time on, ms since the epoch. */
interface OriginSince {
  readonly at: number
  readonly origin: string | undefined
}

interface KnownOrigins {
  /** Oldest first. */
  readonly origins: ReadonlyArray<OriginSince>
  /** True if there are no older ones. */
  readonly isWhole: boolean
}

const kind = "endpoint-changed"

const changeIn = ({ at, change }: Fact): OriginSince => ({ at, origin: change?.now?.origin })

/** Reads the last change of an endpoint that is recorded; undefined if there is none. */
const readLast = Effect.fnUntraced(function* (tenant: string, endpoint: string) {
  const { names, readMessage } = yield* Broker
  const last_by_subj = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
  const message = yield* readMessage(`look at ${tenant}/${endpoint}`, names.configuration, {
    last_by_subj
  })
  return Option.getOrUndefined(
    Option.map(decodeFact(message?.string() ?? ""), (fact): OriginSince => changeIn(fact))
  )
})

/** The scheme, host and port of endpoints, as they were at a time. Remembers them. */
export class EndpointOrigins {
  readonly #known = new Map<string, KnownOrigins>()

  /** Takes an `endpoint-changed` fact. */
  note(fact: Fact): void {
    const key = endpointKey(fact.tenant, fact.endpoint)
    const { isWhole = false, origins = [] } = this.#known.get(key) ?? {}
    const next = [...origins, changeIn(fact)].toSorted((a, b) => a.at - b.at)
    const kept = next.slice(-maxChanges)
    this.#remember(key, { isWhole: isWhole && kept.length === next.length, origins: kept })
  }

  /** @param at ms since the epoch. */
  readonly of = Effect.fnUntraced(
    { self: this },
    function* (tenant: string, endpoint: string, at: number) {
      const key = endpointKey(tenant, endpoint)
      const inForce = (origins: ReadonlyArray<OriginSince>) =>
        origins.findLast((one) => one.at <= at)
      const known = this.#known.get(key)
      const found = inForce(known?.origins ?? [])
      if (found !== undefined) return found.origin
      if (known?.isWhole === true) return known.origins[0]?.origin
      const last = known === undefined ? yield* readLast(tenant, endpoint) : undefined
      if (last !== undefined && last.at <= at) {
        this.#remember(key, { origins: [last], isWhole: false })
        return last.origin
      }
      const story = yield* readStory(tenant, endpoint)
      const origins = story.map(({ at, configuration }) => ({ at, origin: configuration?.origin }))
      this.#remember(key, { origins, isWhole: true })
      return (inForce(origins) ?? origins[0])?.origin
    }
  )

  #remember(key: string, known: KnownOrigins): void {
    if (this.#known.size >= maxEndpoints && !this.#known.has(key)) this.#known.clear()
    this.#known.set(key, known)
  }
}

/** Up to where spans of the history were exported, under this key of the bucket of jobs. */
const key = "traces.position"

const TracePosition = Schema.Struct({
  v: Schema.Literal(1),
  /** Sequence in HISTORY. */
  seq: Schema.Int,
  /** When the fact there was stored, ns since the epoch; empty if that is not known. */
  nanoseconds: Schema.String
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(TracePosition))
const encode = Schema.encodeSync(Schema.fromJsonString(TracePosition))

/** A position with its revision in the bucket. */
interface StoredPosition extends ReadingPosition {
  readonly revision: number
}

/** Reads the position, undefined if there is none yet, and the revision to store another one over. */
export const readTracePosition = Effect.gen(function* () {
  const { names } = yield* Broker
  const { revision, text } = yield* readEntry(names.buckets.jobs, key)
  const position = text === undefined ? undefined : Option.getOrUndefined(decode(text))
  return { revision, position }
})

/**
 * Stores a position over another one. Fails with a conflict if another console has stored one.
 *
 * @param revision of the one before; 0 for none.
 */
export const storeTracePosition = Effect.fnUntraced(function* (
  { nanoseconds, seq }: ReadingPosition,
  revision: number
) {
  const { names } = yield* Broker
  const value = encode({ v: 1, seq, nanoseconds })
  const stored = yield* writeValue(names.buckets.jobs, key, value, { expected: revision })
  return { seq, nanoseconds, revision: stored.seq } satisfies StoredPosition
})

interface TraceExportOptions extends OtlpTarget {
  /** The console, for whoever looks at the lease. */
  readonly name: string
  readonly version: string
  /** How long a POST may take, ms. (Default: 10 s) */
  readonly timeoutMs?: number | undefined
  /** Pause after a POST that was not taken, ms. (Default: 5 s) */
  readonly retryMs?: number | undefined
}

const defaultTimeoutMs = 10_000
const defaultRetryMs = 5_000
/** Facts that are read before their spans are pushed: this bounds what is in memory. */
const factsPerReading = 2_000
/** Spans of one POST: some 200 KB, which any collector takes. */
const spansPerPost = 200
/** Pause before it is looked for new facts, or for the lease. */
const lookEvery = "1 second"
/** Key of the lease: one console exports. */
const leaseKey = "lease.traces"

/** Only facts with a traceparent have it in their text; most facts of most installations have none. */
const mayBeTraced = '"trace":"'

/** What was read of the history. */
interface Reading {
  /** Facts of sampled traces and changes of endpoints, in order. */
  readonly facts: ReadonlyArray<TracedFact | Fact>
  readonly end: ReadingPosition
}

const isTraced = (fact: TracedFact | Fact): fact is TracedFact => "fact" in fact

/** Reads what follows a position in the history, up to a sequence. */
const readRange = Effect.fnUntraced(function* (after: ReadingPosition, to: number) {
  const { names } = yield* Broker
  const facts: Array<TracedFact | Fact> = []
  let end: Reading["end"] = { seq: to, nanoseconds: "" }
  yield* readThrough(
    { stream: names.history, subjects: [names.subjects.allFacts], from: after.seq + 1, to, after },
    ({ message, nanoseconds, seq }) => {
      if (seq === to) end = { seq, nanoseconds }
      const isChange = message.subject.endsWith(".endpoint-changed")
      const text = message.string()
      if (!isChange && !text.includes(mayBeTraced)) return
      const fact = Option.getOrUndefined(decodeFact(text))
      const kept = fact === undefined || isChange ? fact : tracedFact(fact)
      if (kept !== undefined) facts.push(kept)
    }
  )
  return { facts, end } satisfies Reading
})

/** Makes the spans of what was read. */
const makeSpans = Effect.fnUntraced(function* (
  facts: Reading["facts"],
  origins: EndpointOrigins
): Effect.fn.Return<ReadonlyArray<Span>, Effect.Error<ReturnType<typeof origins.of>>, Broker> {
  const spans: Array<Span> = []
  for (const one of facts) {
    if (!isTraced(one)) {
      origins.note(one)
      continue
    }
    const { at, endpoint, kind, tenant } = one.fact
    const origin = kind === "routed" ? undefined : yield* origins.of(tenant, endpoint, at)
    spans.push(...spansOf(one, origin))
  }
  return spans
})

/** Where to go on: after what was exported, or with what happens from now on. */
const findPosition = Effect.gen(function* () {
  const { firstSince, names, streamInfo } = yield* Broker
  const { position, revision } = yield* readTracePosition
  if (position !== undefined && (yield* compareHistory(position)) !== "other")
    return { ...position, revision }
  const { state } = yield* streamInfo("look at the history", names.history)
  const { nanoseconds = "" } = position ?? {}
  const next =
    nanoseconds === ""
      ? state.last_seq + 1
      : yield* firstSince(names.history, millisOf(nanoseconds))
  if (position !== undefined)
    yield* Effect.logWarning(
      `this history is not the one whose spans were exported: exports continue with fact ${next}`
    )
  return yield* storeTracePosition({ seq: next - 1, nanoseconds: "" }, revision)
})

type Push = (spans: ReadonlyArray<Span>) => Effect.Effect<void>

/** Exports what the history tells, from the stored position on, without end. */
const follow = Effect.fnUntraced(function* (push: Push) {
  const { names, streamInfo } = yield* Broker
  const origins = new EndpointOrigins()
  let position = yield* findPosition
  while (true) {
    const { state } = yield* streamInfo("look at the history", names.history)
    const { first_seq: first, last_seq: last } = state
    if (hasOtherEnd(position, state)) position = yield* findPosition
    const next = position.seq + 1
    if (first > next) {
      yield* Effect.logWarning(
        `the history has removed ${first - next} facts before their spans were exported: these are missing from traces`
      )
      position = yield* storeTracePosition({ seq: first - 1, nanoseconds: "" }, position.revision)
    } else if (next > last) {
      yield* Effect.sleep(lookEvery)
    } else {
      const { end, facts } = yield* readRange(
        position,
        Math.min(last, position.seq + factsPerReading)
      )
      yield* push(yield* makeSpans(facts, origins))
      position = yield* storeTracePosition(end, position.revision)
    }
  }
})

const makePush = (options: TraceExportOptions): Push => {
  const { name: _, retryMs = defaultRetryMs, timeoutMs = defaultTimeoutMs, version } = options
  const source = { resource: { "service.name": "petrel-worker" }, version }
  const post = makeOtlpPost({
    ...options,
    ...{ what: "spans", meanwhile: "they wait in the history", refused: "they are lost" }
  })
  return Effect.fnUntraced(function* (spans) {
    for (let at = 0; at < spans.length; at += spansPerPost) {
      const some = spans.slice(at, at + spansPerPost)
      while (!(yield* post(() => otlpSpans(some, source), timeoutMs))) yield* Effect.sleep(retryMs)
    }
  })
}

/**
 * Exports the spans of sampled traces by OTLP/HTTP, until the scope closes. Of all consoles that do,
 * one exports; another goes on from its position where it has ended. A position is stored after its
 * spans were taken, so that some may be exported again: with the same ids.
 *
 * While the collector takes nothing the position stays, and nothing but one reading is in memory.
 */
export const exportTraces = Effect.fnUntraced(function* (options: TraceExportOptions) {
  const owner = yield* Effect.sync(() => `${options.name} ${randomBytes(6).toString("hex")}`)
  const push = makePush(options)
  const work = Effect.gen(function* () {
    const lease = yield* takeLease(leaseKey, owner)
    if (lease === undefined) return
    yield* Effect.raceFirst(follow(push), keepLease(lease, Effect.undefined)).pipe(
      Effect.ensuring(lease.giveBack)
    )
  })
  yield* work.pipe(
    Effect.catch((error) =>
      Effect.logDebug("spans could not be exported; trying again", { why: error.message })
    ),
    Effect.catchDefect((defect) => Effect.logError("spans could not be exported", defect)),
    Effect.andThen(Effect.sleep(lookEvery)),
    Effect.forever,
    Effect.forkScoped
  )
})
