import { Clock, Effect, Option, Schedule, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { HeaderList } from "../broker/publication.ts"
import { readStream } from "../broker/scan.ts"
import type {
  Configuration,
  ConfigurationChange,
  SettingDifference
} from "../domain/configuration.ts"
import { differencesOf } from "../domain/configuration.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { present } from "../domain/record.ts"
import { Metrics } from "../metrics/worker-metrics.ts"
import { appendFact } from "./facts.ts"
import { parseFact } from "./read.ts"

/** Headers in the endpoints bucket: the author as given, and the broker's user. */
const authorHeader = { by: "Petrel-By", user: "Petrel-User" } as const
/** The same of a change of state. */
const stateHeader = { kind: "Petrel-State", at: "Petrel-At", worker: "Petrel-Worker" } as const
/** Names from the bucket are cut to this length, in UTF-16 units. */
const maxNameLength = 200

/** Who changed an endpoint. */
interface Author {
  /** The name that the author gave. */
  readonly by?: string | undefined
  /** The broker's user, if the broker reports it. */
  readonly user?: string | undefined
}

/** Headers that name the author of a change in the endpoints bucket. */
export const authorHeaders = ({ by, user }: Author): HeaderList => [
  ...(by === undefined ? [] : [[authorHeader.by, encodeURIComponent(by)] as const]),
  ...(user === undefined ? [] : [[authorHeader.user, encodeURIComponent(user)] as const])
]

const readName = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text).slice(0, maxNameLength) || undefined
  } catch {
    return undefined
  }
}

/** Reads the headers that {@link authorHeaders} writes; omits what it cannot decode. */
export const readAuthor = (header: (name: string) => string): Author => ({
  by: readName(header(authorHeader.by)),
  user: readName(header(authorHeader.user))
})

const stateKinds = [
  "endpoint-disabled",
  "endpoint-enabled",
  "endpoint-paused",
  "endpoint-resumed",
  "endpoint-suspended"
] as const

/** A change of an endpoint's state, which has a fact of its own in addition to that of the change. */
export interface StateChange {
  readonly kind: (typeof stateKinds)[number]
  /** When it was decided, ms since the epoch. */
  readonly at: number
  /** The worker that decided; `cli` for people. */
  readonly worker: string
}

/** Headers that name a change of state in the endpoints bucket. */
export const stateHeaders = (state: StateChange | undefined): HeaderList =>
  state === undefined
    ? []
    : [
        [stateHeader.kind, state.kind],
        [stateHeader.at, String(state.at)],
        [stateHeader.worker, encodeURIComponent(state.worker)]
      ]

/** Reads the headers that {@link stateHeaders} writes. */
export const readState = (header: (name: string) => string): StateChange | undefined => {
  const kind = stateKinds.find((each) => each === header(stateHeader.kind))
  const worker = readName(header(stateHeader.worker))
  const at = Number(header(stateHeader.at))
  if (kind === undefined || worker === undefined || !Number.isSafeInteger(at)) return undefined
  return { kind, at, worker }
}

const kind = "endpoint-changed"

/** One change of an endpoint, with its author if known. */
export interface EndpointChange extends Author {
  readonly tenant: string
  readonly endpoint: string
  readonly change: ConfigurationChange
  /** Set where it changes the endpoint's state. */
  readonly state?: StateChange | undefined
}

/**
 * Message id of a change, by which the history stores it once. It contains the time, because a
 * truncated bucket assigns its revisions again.
 */
export const changeId = (key: string, revision: number, storedAt: number): string =>
  `${kind}.${key}.${revision}.${storedAt}`

/** Why an endpoint was brought into a state, where its configuration tells. */
const reasonOf = ({ now }: ConfigurationChange, { kind }: StateChange): string | undefined => {
  switch (kind) {
    case "endpoint-disabled":
      return now?.disabled?.reason
    case "endpoint-paused":
      return now?.paused?.reason
    case "endpoint-suspended":
      return now?.suspended?.reason
    default:
      return undefined
  }
}

/**
 * Appends the fact of the state into which a change brought an endpoint, if it did. Its id stores it
 * once within the history's dedupe window.
 */
export const appendState = Effect.fnUntraced(function* (changed: EndpointChange) {
  const { by, change, endpoint, state, tenant, user } = changed
  if (state === undefined) return
  const reason = reasonOf(change, state)
  const fact: Fact = { v: 1, ...state, tenant, endpoint, by, user, reason }
  const id = `${state.kind}.${tenant}.${endpoint}.${change.revision}.${state.at}`
  const { duplicate } = yield* appendFact(fact, id)
  if (!duplicate) (yield* Metrics).stored(fact)
})

/**
 * Appends the fact of a change, and before it that of the endpoint's new state: where the history
 * has the change, it has both. Its id stores it once within the history's dedupe window.
 */
export const appendChange = Effect.fnUntraced(function* (changed: EndpointChange) {
  yield* appendState(changed)
  const { by, change, endpoint, tenant, user } = changed
  const { revision, storedAt } = change
  const at = storedAt === 0 ? yield* Clock.currentTimeMillis : storedAt
  const id = changeId(`${tenant}.${endpoint}`, revision, storedAt)
  return yield* appendFact({ v: 1, kind, at, tenant, endpoint, by, user, change }, id)
})

/** Like {@link appendChange}, but retries every second until the history accepts the fact. */
export const appendChangeSurely = (change: EndpointChange) =>
  Effect.retry(appendChange(change), Schedule.spaced("1 second")).pipe(Effect.orDie)

/** Parses an id that {@link changeId} made; undefined for any other id. */
const readChangeId = (id: string) => {
  const [name, tenant, endpoint, revision, storedAt] = id.split(".")
  if (name !== kind || storedAt === undefined) return undefined
  return { key: `${tenant}.${endpoint}`, revision: Number(revision), storedAt: Number(storedAt) }
}

/** The last recorded change of each endpoint, of any age. */
export interface LastChanges {
  readonly has: (key: string, revision: number, storedAt: number) => boolean
  /** False if the last record says that the endpoint vanished from the bucket without a removal. */
  readonly isPresent: (key: string) => boolean
  /** Keys of the endpoints that are present. */
  readonly keys: () => Iterable<string>
}

/** Knows no change, so every change has to be recorded. Uses no memory. */
export const noKnownChanges: LastChanges = {
  has: () => false,
  isPresent: () => false,
  keys: () => []
}

/** Reads the headers of each endpoint's last change: 100,000 in about a second. */
export const readLastChanges = Effect.gen(function* () {
  const { names, see } = yield* Broker
  const ids = new Map<string, string>()
  const changes = {
    stream: names.configuration,
    subjects: [names.subjects.fact("*", "*", factResult(kind), kind)],
    headersOnly: true,
    lastOfSubjects: true
  }
  yield* see(changes, 1, ({ headers }) => {
    const id = headers?.get("Nats-Msg-Id") ?? ""
    const change = readChangeId(id)
    if (change !== undefined && change.storedAt !== 0) ids.set(change.key, id)
    return false
  })
  return {
    has: (key, revision, storedAt) => ids.get(key) === changeId(key, revision, storedAt),
    isPresent: (key) => ids.has(key),
    keys: () => ids.keys()
  } satisfies LastChanges
}).pipe(Effect.scoped)

/** A change of an endpoint, and what it changed. */
export interface ConfigurationStep {
  readonly revision: number
  /** ms since the epoch. */
  readonly at: number
  /** Its author, if known. */
  readonly by?: string
  /** The broker's user that recorded it, if known. */
  readonly user?: string
  readonly change: "added" | "changed" | "removed" | "unreadable"
  /** Since the last readable configuration. For an added endpoint: every setting that is set. */
  readonly differences: ReadonlyArray<SettingDifference>
  /** The configuration after the change. Absent if the endpoint was removed or is unreadable. */
  readonly configuration?: Configuration
}

/**
 * Returns one endpoint's changes, oldest first. A change that was recorded twice counts once.
 *
 * @param facts of the kind `endpoint-changed`, in any order.
 */
export const storyOf = (facts: ReadonlyArray<Fact>): ReadonlyArray<ConfigurationStep> => {
  const changes = new Map<string, Fact>()
  for (const fact of facts) {
    if (fact.change === undefined) continue
    const id = changeId("", fact.change.revision, fact.change.storedAt)
    // A watcher may record the change before its author does, and does not know the author.
    if (changes.get(id)?.by === undefined) changes.set(id, fact)
  }
  const story: Array<ConfigurationStep> = []
  let last: Configuration | undefined
  for (const { at, by, change, user } of [...changes.values()].toSorted(inOrder)) {
    if (change === undefined) continue
    const { isUnreadable, now, revision } = change
    const step = {
      revision,
      at,
      ...present({ by, user })
    }
    if (now !== undefined) {
      const differences = differencesOf(last, now)
      const what = last === undefined ? "added" : "changed"
      story.push({ ...step, change: what, differences, configuration: now })
      last = now
    } else if (isUnreadable === true) {
      story.push({ ...step, change: "unreadable", differences: [] })
    } else {
      story.push({ ...step, change: "removed", differences: [] })
      last = undefined
    }
  }
  return story
}

/** A truncated bucket assigns its revisions again, so the time decides first. */
const inOrder = (one: Fact, other: Fact): number =>
  one.at - other.at || (one.change?.revision ?? 0) - (other.change?.revision ?? 0)

/**
 * Reads all known changes of an endpoint, oldest first, also of a removed one. Reads the permanent
 * copy and the history, because the copy lags the history by moments.
 *
 * @param most only the latest so many. (Default: all)
 */
export const readStory = Effect.fnUntraced(function* (
  tenant: string,
  id: string,
  most = Number.POSITIVE_INFINITY
) {
  const { names } = yield* Broker
  const kind = "endpoint-changed"
  const subjects = [names.subjects.fact(tenant, id, factResult(kind), kind)]
  // What the oldest one changed is known from the one before it.
  const read = (stream: string) => {
    const messages = readStream({ stream, subjects })
    return Stream.runCollect(
      Number.isFinite(most) ? Stream.takeRight(messages, most + 1) : messages
    )
  }
  const all = yield* Effect.all([read(names.configuration), read(names.history)], {
    concurrency: 2
  })
  const facts = all
    .flat()
    .flatMap((message) => Option.toArray(parseFact(message.string(), message.seq)))
  return storyOf(facts.map(({ fact }) => fact)).slice(-most)
})
