import { DeliverPolicy } from "@nats-io/jetstream"
import { Clock, Effect, Schedule } from "effect"
import { Broker } from "../broker/connection.ts"
import type { HeaderList } from "../broker/publisher.ts"
import type { ConfigurationChange } from "../domain/configuration.ts"
import type { Fact } from "../domain/fact.ts"
import { moodOf } from "../domain/fact.ts"

/** Header of a message in the endpoints bucket: who changed the endpoint. */
const byHeader = "Petrel-By"
/** Longest name of who changed it that is taken over from the bucket, in UTF-16 units. */
const longestBy = 200

/** Headers that say in the endpoints bucket who changed the endpoint. */
export const byHeaders = (by: string | undefined): HeaderList =>
  by === undefined ? [] : [[byHeader, encodeURIComponent(by)]]

/** What {@link byHeaders} says; undefined where it says nothing that can be read. */
export const readBy = (header: (name: string) => string): string | undefined => {
  try {
    return decodeURIComponent(header(byHeader)).slice(0, longestBy) || undefined
  } catch {
    return undefined
  }
}

const kind = "endpoint-changed"

/** One change of an endpoint, and who made it where that is known. */
export interface EndpointChange {
  readonly tenant: string
  readonly endpoint: string
  readonly change: ConfigurationChange
  readonly by?: string | undefined
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
  tenant
}: EndpointChange) {
  const { names, publisher } = yield* Broker
  const at = change.storedAt === 0 ? yield* Clock.currentTimeMillis : change.storedAt
  const fact: Fact = { v: 1, kind, at, tenant, endpoint, by, change }
  const id = changeId(`${tenant}.${endpoint}`, change.revision, change.storedAt)
  return yield* publisher.publish(
    names.subjects.fact(tenant, endpoint, moodOf(kind), kind),
    JSON.stringify(fact),
    [["Nats-Msg-Id", id]]
  )
})

/** The same, however long the history does not take it. */
export const appendChangeSurely = (change: EndpointChange) =>
  Effect.retry(appendChange(change), Schedule.spaced("1 second")).pipe(Effect.orDie)

/** Ids of the last change of each endpoint that the history has been told, however long ago. */
export const lastChangeIds = Effect.gen(function* () {
  const { ask, js, names } = yield* Broker
  const stream = names.configuration
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const consumer = yield* Effect.acquireRelease(
        ask(`read ${stream}`, () =>
          js.consumers.get(stream, {
            deliver_policy: DeliverPolicy.LastPerSubject,
            filter_subjects: [names.subjects.fact("*", "*", moodOf(kind), kind)],
            headers_only: true
          })
        ),
        (consumer) => Effect.sync(() => void consumer.delete().catch(() => undefined))
      )
      return yield* ask(`read ${stream}`, async () => {
        const ids = new Set<string>()
        const { num_pending } = await consumer.info()
        if (num_pending === 0) return ids
        for await (const message of await consumer.consume({ max_messages: 5_000 })) {
          ids.add(message.headers?.get("Nats-Msg-Id") ?? "")
          if (message.info.pending === 0) break
        }
        return ids
      })
    })
  )
})
