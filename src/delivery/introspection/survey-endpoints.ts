import { Context, Effect, Option, Schema, Semaphore } from "effect"
import { Broker, type Seen } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { isEndpointKey, isRemade } from "../../domain/endpoint.ts"
import { CircuitState, type EndpointState, endpointStateOf } from "../../domain/health.ts"
import type { EndpointCounts } from "../../domain/installation.ts"
import { readLostEndpoints } from "../../endpoints/lost-endpoints.ts"
import { timers } from "../../time/timers.ts"

/** An endpoint whose circuit is open. */
interface Troubled {
  readonly tenant: string
  readonly endpoint: string
  /** ms since the epoch */
  readonly since: number
  readonly why: string
}

export interface EndpointsSurvey {
  readonly counts: Omit<typeof EndpointCounts.Type, "withBacklog">
  /** Endpoints that the history has, and that are not in the bucket since it was made again. */
  readonly lost: number
  /** Endpoints that were made again from the history, and wait for what it does not hold. */
  readonly incomplete: number
  /** The three endpoints whose circuit has been open longest, in that order. */
  readonly longestOpen: ReadonlyArray<Troubled>
}

const named = 3

// Only what is counted: decoding 100,000 whole configurations takes seconds.
const Standing = Schema.Struct({
  generation: Schema.String,
  disabled: Schema.optionalKey(Schema.Unknown),
  suspended: Schema.optionalKey(Schema.Unknown),
  paused: Schema.optionalKey(Schema.Struct({ reason: Schema.optionalKey(Schema.String) }))
})
const Fare = Schema.Struct({
  generation: Schema.String,
  circuit: Schema.Struct({
    state: CircuitState,
    since: Schema.Number,
    why: Schema.optionalKey(Schema.String)
  })
})
const decodeStanding = Schema.decodeUnknownOption(Schema.fromJsonString(Standing))
const decodeFare = Schema.decodeUnknownOption(Schema.fromJsonString(Fare))

/** How long a table goes on from what it has before it is read as a whole, ms: a marker that was removed says nothing of the key that it removed. */
const wholeEveryMs = 600_000

/** What is kept of the values of a bucket from one reading to the next. */
class BucketTable<A> {
  readonly entries = new Map<string, A>()
  readonly #madeAt = timers.monotonicMs()
  /** When the stream was made. */
  readonly #created: string
  #reached = 0
  #last: Pick<Seen, "nanoseconds" | "seq"> | undefined

  constructor(created: string) {
    this.#created = created
  }

  /** True if only what came later is to be read. */
  goesOn(created: string, lastSeq: number): boolean {
    const ageMs = timers.monotonicMs() - this.#madeAt
    return this.#created === created && lastSeq >= this.#reached && ageMs < wholeEveryMs
  }

  /** Reads up to a sequence. As a Stream, 100,000 values took three times as long. */
  read(
    { bucket, firstSeq, lastSeq }: Omit<Reading<A>, "table">,
    take: (text: string) => A | undefined
  ) {
    const prefix = `$KV.${bucket}.`
    const range = {
      stream: `KV_${bucket}`,
      subjects: [`${prefix}>`],
      from: Math.max(firstSeq, this.#reached + 1),
      to: lastSeq,
      after: this.#last
    }
    const see = ({ message, nanoseconds, seq }: Seen) => {
      const key = message.subject.slice(prefix.length)
      // A key that was removed.
      const isGone = removals.some((name) => message.headers?.has(name) === true)
      const value = isGone ? undefined : take(message.string())
      if (value === undefined) this.entries.delete(key)
      else this.entries.set(key, value)
      // A reading that is broken off, or takes too long, is gone on with by the next one.
      this.#last = { seq, nanoseconds }
      this.#reached = seq
    }
    return Effect.tap(readThrough(range, see), () =>
      Effect.sync(() => {
        this.#reached = lastSeq
      })
    )
  }
}

const removals = ["KV-Operation", "Nats-Marker-Reason"]

/** An endpoint, as far as it is counted. */
interface Counted {
  readonly generation: string
  /** Its state if its circuit is closed. */
  readonly state: EndpointState | "unreadable"
  readonly isIncomplete: boolean
}

const unreadable: Counted = { generation: "", state: "unreadable", isIncomplete: false }

const countedIn = (text: string): Counted => {
  const standing = Option.getOrUndefined(decodeStanding(text))
  if (standing === undefined) return unreadable
  const state = endpointStateOf(standing)
  const isIncomplete = standing.paused !== undefined && isRemade(standing.paused)
  return { generation: standing.generation, state, isIncomplete }
}

/** The health of an endpoint whose circuit is not closed. */
const troubleIn = (text: string): typeof Fare.Type | undefined => {
  const fare = Option.getOrUndefined(decodeFare(text))
  return fare?.circuit.state === "closed" ? undefined : fare
}

/**
 * What was read of the endpoints before. A process that surveys again and again keeps it, and reads
 * only what has changed since: to read 100,000 endpoints takes more than a second of CPU.
 */
export class KnownEndpoints extends Context.Service<KnownEndpoints, EndpointTables>()(
  "petrel/delivery/KnownEndpoints"
) {
  static readonly make = () => KnownEndpoints.of(new EndpointTables())
}

/** The table of a bucket that is kept: one reads what has changed at a time. */
const kept = <A>(
  nameIn: (buckets: Broker["Service"]["names"]["buckets"]) => string,
  take: (text: string) => A | undefined
) => {
  let known: Reading<A> | undefined
  const reading = Effect.gen(function* () {
    const { names } = yield* Broker
    known = yield* current(nameIn(names.buckets), known)
    yield* known.table.read(known, take)
    return known.table.entries
  })
  // What fails is read as a whole next time.
  const forgetting = Effect.tapError(reading, () =>
    Effect.sync(() => {
      known = undefined
    })
  )
  return Semaphore.makeUnsafe(1).withPermits(1)(forgetting)
}

class EndpointTables {
  /** Reads what has changed of the health of those whose circuit is not closed, and returns it. */
  readonly readHealth = kept(({ health }) => health, troubleIn)
  readonly #readEndpoints = kept(({ endpoints }) => endpoints, countedIn)

  /** Reads what has changed, and returns what there is. */
  readonly read = Effect.gen({ self: this }, function* () {
    const health = yield* this.readHealth
    return { health, endpoints: yield* this.#readEndpoints }
  })
}

/** The table of a bucket, and what of the bucket it is to have read. */
interface Reading<A> {
  readonly bucket: string
  readonly firstSeq: number
  readonly lastSeq: number
  readonly table: BucketTable<A>
}

/** Looks at a bucket, and makes its table anew where the known one cannot be gone on with. */
const current = Effect.fnUntraced(function* <A>(bucket: string, known: Reading<A> | undefined) {
  const { streamInfo } = yield* Broker
  const { created, state } = yield* streamInfo(`look at ${bucket}`, `KV_${bucket}`)
  const { first_seq: firstSeq, last_seq: lastSeq } = state
  const table =
    known?.table.goesOn(created, lastSeq) === true ? known.table : new BucketTable<A>(created)
  return { bucket, firstSeq, lastSeq, table } satisfies Reading<A>
})

const tables = Effect.map(
  Effect.serviceOption(KnownEndpoints),
  Option.getOrElse(() => new EndpointTables())
)
const readTables = Effect.flatMap(tables, ({ read }) => read)

/** Returns the state of an endpoint that is in the tables. */
const stateIn = (
  { endpoints, health }: Effect.Success<typeof readTables>,
  key: string
): Counted["state"] | undefined => {
  const found = endpoints.get(key)
  if (found?.state !== "closed") return found?.state
  const fare = health.get(key)
  // Health of an earlier endpoint of the same name does not apply.
  return fare?.generation === found.generation ? fare.circuit.state : "closed"
}

/** The states that the health of an endpoint tells, and nothing else. */
const ofCircuits: ReadonlySet<EndpointState> = new Set(["open", "half-open"])

/**
 * Returns what tells by its key `<tenant>.<endpoint>` whether an endpoint may be in one of some states,
 * as of now. Of circuits that are not closed only the health is read, which is little, while reading
 * 100,000 endpoints takes seconds: it says so of one that is disabled or paused, too.
 */
export const readMayBeIn = Effect.fnUntraced(function* (states: ReadonlyArray<EndpointState>) {
  const wanted: ReadonlySet<string | undefined> = new Set(states)
  if (states.every((state) => ofCircuits.has(state))) {
    const health = yield* Effect.flatMap(tables, ({ readHealth }) => readHealth)
    return (key: string) => wanted.has(health.get(key)?.circuit.state)
  }
  const read = yield* readTables
  return (key: string) => wanted.has(stateIn(read, key))
})

/** Counts the endpoints by state. */
export const surveyEndpoints = Effect.gen(function* () {
  const read = yield* readTables
  const { endpoints, health } = read
  const counts = {
    ...{ closed: 0, open: 0, halfOpen: 0 },
    ...{ paused: 0, suspended: 0, disabled: 0, unreadable: 0 }
  }
  const open: Array<Troubled> = []
  let total = 0
  let incomplete = 0
  for (const [key, { isIncomplete }] of endpoints) {
    // Settings of tenants and of the system.
    if (!isEndpointKey(key)) continue
    total++
    if (isIncomplete) incomplete++
    const state = stateIn(read, key)
    if (state === undefined) continue
    counts[state === "half-open" ? "halfOpen" : state]++
    if (state !== "open") continue
    const { since = 0, why = "" } = health.get(key)?.circuit ?? {}
    const [tenant = "", endpoint = ""] = key.split(".")
    open.push({ tenant, endpoint, since, why })
  }
  const longestOpen = open.toSorted((a, b) => a.since - b.since).slice(0, named)
  const { length: lost } = yield* readLostEndpoints
  return { counts: { total, ...counts }, lost, incomplete, longestOpen } satisfies EndpointsSurvey
})
