import { DeliverPolicy } from "@nats-io/jetstream"
import { Clock, Effect, Schedule } from "effect"
import { Broker } from "../broker/connection.ts"
import type { HeaderList } from "../broker/publisher.ts"
import type { ConfigurationChange } from "../domain/configuration.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"

/** Headers of a message in the endpoints bucket: who changed the endpoint, as they say and as the broker knows them. */
const authorHeader = { by: "Petrel-By", user: "Petrel-User" } as const
/** Longest name that is taken over from the bucket, in UTF-16 units. */
const maxNameLength = 200

/** Who changed an endpoint. */
export interface Author {
  /** As they say. */
  readonly by?: string | undefined
  /** The broker's user, where it tells. */
  readonly user?: string | undefined
}

/** Headers that say in the endpoints bucket who changed the endpoint. */
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

/** What {@link authorHeaders} says; what cannot be read is left out. */
export const readAuthor = (header: (name: string) => string): Author => ({
  by: readName(header(authorHeader.by)),
  user: readName(header(authorHeader.user))
})

const kind = "endpoint-changed"

/** One change of an endpoint, and who made it where that is known. */
export interface EndpointChange extends Author {
  readonly tenant: string
  readonly endpoint: string
  readonly change: ConfigurationChange
}

/**
 * Under which the history takes a change once. The time belongs to it: a bucket that has lost its end
 * gives its revisions again.
 */
export const changeId = (key: string, revision: number, storedAt: number): string =>
  `${kind}.${key}.${revision}.${storedAt}`

/** Appends the fact of a change; under its id it is stored once (inside the history's dedupe window). */
export const appendChange = Effect.fnUntraced(function* ({
  by,
  change,
  endpoint,
  tenant,
  user
}: EndpointChange) {
  const { names, publisher } = yield* Broker
  const at = change.storedAt === 0 ? yield* Clock.currentTimeMillis : change.storedAt
  const fact: Fact = { v: 1, kind, at, tenant, endpoint, by, user, change }
  const id = changeId(`${tenant}.${endpoint}`, change.revision, change.storedAt)
  return yield* publisher.publish(
    names.subjects.fact(tenant, endpoint, factResult(kind), kind),
    JSON.stringify(fact),
    [["Nats-Msg-Id", id]]
  )
})

/** The same, however long the history does not take it. */
export const appendChangeSurely = (change: EndpointChange) =>
  Effect.retry(appendChange(change), Schedule.spaced("1 second")).pipe(Effect.orDie)

/** The change that {@link changeId} names; undefined where it names none. */
const readChangeId = (id: string) => {
  const [name, tenant, endpoint, revision, storedAt] = id.split(".")
  if (name !== kind || storedAt === undefined) return undefined
  return { key: `${tenant}.${endpoint}`, revision: Number(revision), storedAt: Number(storedAt) }
}

/** The last change of each endpoint that the history was told, however long ago. */
export interface LastChanges {
  readonly has: (key: string, revision: number, storedAt: number) => boolean
  /** False where it was told that the endpoint is gone from the bucket, without a trace of its removal. */
  readonly isPresent: (key: string) => boolean
  /** Keys of those that are present. */
  readonly keys: () => Iterable<string>
}

/** What takes no memory, and says that all has to be told. */
export const nothingTold: LastChanges = {
  has: () => false,
  isPresent: () => false,
  keys: () => []
}

/** Reads, without their bodies, the last fact of each endpoint's changes: 100,000 in about a second. */
export const readLastChanges = Effect.gen(function* () {
  const { ask, js, names } = yield* Broker
  const stream = names.configuration
  const ids = new Map<string, string>()
  const consumer = yield* Effect.acquireRelease(
    ask(`read ${stream}`, () =>
      js.consumers.get(stream, {
        deliver_policy: DeliverPolicy.LastPerSubject,
        filter_subjects: [names.subjects.fact("*", "*", factResult(kind), kind)],
        headers_only: true
      })
    ),
    (consumer) => Effect.sync(() => void consumer.delete().catch(() => undefined))
  )
  yield* ask(`read ${stream}`, async () => {
    const { num_pending } = await consumer.info()
    if (num_pending === 0) return
    for await (const message of await consumer.consume({ max_messages: 5_000 })) {
      const id = message.headers?.get("Nats-Msg-Id") ?? ""
      const change = readChangeId(id)
      if (change !== undefined && change.storedAt !== 0) ids.set(change.key, id)
      if (message.info.pending === 0) break
    }
  })
  return {
    has: (key, revision, storedAt) => ids.get(key) === changeId(key, revision, storedAt),
    isPresent: (key) => ids.has(key),
    keys: () => ids.keys()
  } satisfies LastChanges
}).pipe(Effect.scoped)
