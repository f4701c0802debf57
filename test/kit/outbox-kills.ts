import { assert } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { readStream } from "../../src/broker/scan.ts"
import { eventIdHeader } from "../../src/domain/intake.ts"
import { enqueueAll, type OutboxEvent } from "../../src/outbox/outbox.ts"
import { start } from "../cli/running.ts"
import { crashBroker } from "./broker-crash.ts"
import { eventually, type Installation } from "./engine.ts"
import type { TestServer } from "./nats-server.ts"
import { outboxDatabase, withClient } from "./outbox.ts"
import type { PostgresServer } from "./postgres-server.ts"
import { countRows } from "./relaying.ts"

/** Starts `petrel outbox` on a database, as a process. */
export const startRelay = (
  { eventRoot, prefix, url }: Pick<Installation, "eventRoot" | "prefix" | "url">,
  database: string,
  ...more: ReadonlyArray<string>
) =>
  start(
    ...["outbox", "--json", "--database", database, "--nats", url, "--prefix", prefix],
    ...["--events", eventRoot, ...more]
  )

type Said = Effect.Success<ReturnType<typeof startRelay>>

/** Waits until a relay says that it publishes or stands by. */
export const saysThatIt = (relay: Said, state: "publishing" | "standing-by") =>
  relay.until((out) => out.some((line) => line.includes(`"event":"${state}"`)))

export interface KillOptions {
  readonly rows: number
  /** Rows of one transaction, at most. */
  readonly perTransaction: number
  /** What is killed, one after the other, each after its share of the rows was committed. */
  readonly kills: ReadonlyArray<"relay" | "broker" | "database">
}

const writers = 4
const tenants = 7

/** Writes rows from several transactions at once. What is not known to be committed is tried again. */
const writeRows = (
  url: string,
  { perTransaction, rows }: KillOptions,
  committed: Map<string, number>
) => {
  let next = 0
  const batch = (): ReadonlyArray<OutboxEvent> => {
    const count = Math.min(rows - next, 1 + Math.floor(Math.random() * perTransaction))
    return Array.from({ length: count }, () => {
      const number = next++
      return {
        ...{ tenant: `t${number % tenants}`, type: "invoice.paid", id: `row-${number}` },
        body: { number, text: "x".repeat(900) }
      }
    })
  }
  const commit = async (events: ReadonlyArray<OutboxEvent>): Promise<void> => {
    for (;;)
      try {
        await withClient(url, async (client) => {
          await client.query("begin")
          await enqueueAll(client, events)
          await client.query("commit")
        })
        for (const { id = "" } of events) committed.set(id, Date.now())
        return
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
  }
  const rollBack = (events: ReadonlyArray<OutboxEvent>) =>
    withClient(url, async (client) => {
      await client.query("begin")
      await enqueueAll(
        client,
        events.map((event) => ({ ...event, id: `no-${event.id}` }))
      )
      await client.query("rollback")
    }).catch(() => undefined)
  return Effect.promise(() =>
    Promise.all(
      Array.from({ length: writers }, async () => {
        while (next < rows) {
          const events = batch()
          if (Math.random() < 0.1) await rollBack(events)
          await commit(events)
        }
      })
    )
  )
}

/** An event of a stream: its id, and when the broker stored it, ms. */
const eventsIn = (stream: string) =>
  Effect.map(
    Stream.runCollect(readStream({ stream, subjects: [], headersOnly: true })),
    (messages) =>
      messages.map(({ headers, seq, time }) => ({
        seq,
        id: headers?.get(eventIdHeader) ?? "",
        at: time.getTime()
      }))
  )

const rowsIn = (url: string) =>
  Effect.promise(() =>
    withClient(url, async (client) => {
      const { rows } = await client.query(
        "select tenant || '.outbox.' || event_id as id, intake_seq::int as seq from petrel_outbox"
      )
      return rows as ReadonlyArray<{ readonly id: string; readonly seq: number }>
    })
  )

/**
 * Writes rows while relays, broker and database are killed. Asserts that each committed row is one
 * event, that no other is, and that each row has the sequence of its event.
 *
 * @returns the time from each commit to the broker's storing of its event, ms.
 */
export const writeThroughKills = Effect.fnUntraced(function* (
  place: Installation,
  broker: TestServer,
  database: PostgresServer,
  options: KillOptions
) {
  const url = yield* Effect.promise(() => outboxDatabase(database))
  const relays = [yield* startRelay(place, url)]
  yield* Effect.forEach(relays, (relay) => saysThatIt(relay, "publishing"))
  relays.push(yield* startRelay(place, url))
  const committed = new Map<string, number>()
  const writing = yield* Effect.forkScoped(writeRows(url, options, committed))
  for (const [index, kill] of options.kills.entries()) {
    const share = ((index + 1) * options.rows) / (options.kills.length + 1)
    yield* eventually(
      Effect.sync(() => committed.size),
      (count) => count >= share
    )
    if (kill === "broker") yield* crashBroker(broker)
    else if (kill === "database") {
      yield* Effect.promise(database.kill9)
      yield* Effect.promise(database.restart)
    } else {
      const [first] = relays.splice(0, 1)
      yield* first?.signal("SIGKILL") ?? Effect.void
      relays.push(yield* startRelay(place, url))
    }
  }
  yield* Fiber.join(writing)
  // A database that has just been killed may not answer yet.
  const left = Effect.map(countRows(url), ({ pending }) => pending)
  yield* eventually(left, (pending) => pending === 0)
  const { names } = yield* Broker
  const rows = yield* rowsIn(url)
  const intake = yield* eventsIn(names.intake)
  const sorted = (of: ReadonlyArray<{ readonly id: string }>) => of.map(({ id }) => id).sort()
  assert.strictEqual(rows.length, options.rows)
  assert.strictEqual(committed.size, options.rows)
  assert.deepStrictEqual(sorted(intake), sorted(rows))
  const seqs = new Map(intake.map(({ id, seq }) => [id, seq]))
  assert.deepStrictEqual(
    rows.filter(({ id, seq }) => seqs.get(id) !== seq),
    []
  )
  const events = yield* eventually(eventsIn(names.events), ({ length }) => length >= rows.length)
  assert.deepStrictEqual(sorted(events), sorted(rows))
  return intake.map(({ at, id }) => at - (committed.get(id.replace(/^\w+\.outbox\./, "")) ?? 0))
})
