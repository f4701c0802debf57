import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Exit, Stream } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/connection.ts"
import { findPartitions, readLayout } from "../../src/broker/installed.ts"
import { scanQueue } from "../../src/broker/scan.ts"
import { Checkpoint } from "../../src/delivery/checkpoint.ts"
import type { Decision, RetryRecord } from "../../src/delivery/memory/retry-record.ts"
import { readRecord, writeRecord } from "../../src/delivery/memory/retry-record.ts"
import { planRepartition, repartition } from "../../src/delivery/repartition/repartition.ts"
import { makeBegun } from "../../src/delivery/routing/begun.ts"
import type { Delivery, Progress } from "../../src/domain/delivery.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import type { Fact, FactKind, Place } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { Facts } from "../../src/history/facts.ts"
import { allFacts } from "../books.ts"
import { deadLetters, nth } from "../engine.ts"
import { onServer } from "../scenario.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const hour = 3_600_000
const now = Date.now()
const [from, few, many] = [4, 3, 8]
const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
const endpoints = [0, 1, 4, 5].map((index) => `hook-${index}`)

const delivery = (endpoint: string, eventSeq: number, progress: Progress = untried): Delivery => ({
  tenant: "acme",
  endpoint,
  event: `acme-${eventSeq}`,
  eventSeq,
  type: "invoice.paid",
  round: "0",
  began: now,
  deadline: now + 72 * hour,
  generation: "g",
  revision: 7,
  content: { contentType: "text/plain", traceparent },
  progress
})

const tried = (at: number): Progress => ({ attempts: 3, lastStatus: 503, nextAttemptAt: at })

type Room = "deliveries" | "backlog"

/** Puts a delivery where it waits while there are so many partitions, and says where that is. */
const put = Effect.fnUntraced(function* (room: Room, it: Delivery, at?: number, count = from) {
  const { names, publisher } = yield* Broker
  const { endpoint, eventSeq, tenant } = it
  const partition = partitionOf(tenant, endpoint, count)
  const target =
    room === "backlog"
      ? names.subjects.backlog(partition, tenant, endpoint)
      : names.subjects.delivery(partition, tenant, endpoint)
  const headers = deliveryHeaders(it, `${room}.${endpoint}.${eventSeq}`)
  const body = `${eventSeq} for ${endpoint}`
  const { seq, stream } = yield* at === undefined
    ? publisher.publish(target, body, headers)
    : publisher.publish(names.subjects.later(partition, `${endpoint}-${eventSeq}`), body, [
        ...headers,
        ["Nats-Schedule", `@at ${new Date(at).toISOString()}`],
        ["Nats-Schedule-Target", target]
      ])
  return { seq, stream } satisfies Place
})

const factOf = (kind: FactKind, { endpoint, eventSeq }: Delivery, from: Place): Fact => ({
  v: 1,
  kind,
  at: now,
  tenant: "acme",
  endpoint,
  eventSeq,
  round: "0",
  attempt: 3,
  from
})

/** Writes down what was decided about a waiting delivery. */
const decide = Effect.fnUntraced(function* (
  { seq, stream }: Place,
  it: Delivery,
  decision: Decision,
  outcome?: RetryRecord["outcome"]
) {
  const record: RetryRecord = {
    v: 1,
    eventSeq: it.eventSeq,
    tenant: "acme",
    endpoint: it.endpoint,
    round: "0",
    progress: tried(decision._tag === "Nak" ? decision.at : now - hour),
    decision,
    decidedAt: Date.now(),
    since: 0,
    ...(outcome === undefined ? {} : { outcome })
  }
  yield* writeRecord(stream, seq, record, it.deadline)
})

/** One of each way in which an endpoint's deliveries may wait. */
const fill = Effect.fnUntraced(function* (endpoint: string) {
  const facts = yield* Facts
  yield* put("deliveries", delivery(endpoint, 1))
  const nak = delivery(endpoint, 2)
  const nakAt = yield* put("deliveries", nak)
  const untold = { fact: factOf("attempt-failed", nak, nakAt), id: `untold.${endpoint}` }
  yield* decide(nakAt, nak, { _tag: "Nak", at: now + hour }, untold)
  const trying = delivery(endpoint, 3)
  yield* decide(yield* put("deliveries", trying), trying, { _tag: "Trying", times: 2 })
  const ended = delivery(endpoint, 4)
  const endedAt = yield* put("deliveries", ended)
  yield* facts.append(factOf("delivered", ended, endedAt), `ended.${endpoint}`)
  const dead = delivery(endpoint, 5)
  yield* decide(yield* put("deliveries", dead), dead, { _tag: "Dead", reason: "attempts" })
  const later = delivery(endpoint, 6, tried(now + 2 * hour))
  yield* put("deliveries", later, now + 2 * hour)
  for (const eventSeq of [7, 8, 9])
    yield* put("backlog", delivery(endpoint, eventSeq, tried(now - hour)))
  const endedThere = delivery(endpoint, 10)
  const there = yield* put("backlog", endedThere)
  yield* facts.append(factOf("dead-lettered", endedThere, there), `ended-there.${endpoint}`)
})

/** All that waits, as text: where, for whom, and what is known of it. */
const inventory = Effect.fnUntraced(function* (partitions: number) {
  const { names } = yield* Broker
  const found: Array<string> = []
  for (let partition = 0; partition < partitions; partition++)
    for (const stream of [names.deliveries(partition), names.backlog(partition)]) {
      const messages = yield* Stream.runCollect(scanQueue(stream, ">"))
      for (const { data, header, seq, subject } of messages) {
        const target = header.get("Nats-Schedule-Target") || subject
        const [kind, index, tenant = "", endpoint = ""] = target.split(".").slice(-4)
        assert.strictEqual(Number(index), partition)
        assert.strictEqual(partitionOf(tenant, endpoint, partitions), partition)
        const at = header.get("Nats-Schedule").slice(4)
        assert.isBelow(Date.parse(at) || 0, now + 3 * hour, "none is kept from firing")
        const eventSeq = Number(header.get("petrel-event-seq"))
        assert.strictEqual(new TextDecoder().decode(data), `${eventSeq} for ${endpoint}`)
        const progress = JSON.parse(header.get("petrel-progress") || "{}")
        const record = yield* readRecord(stream, seq)
        const decided = record?.decision
        const waits = at !== "" ? Date.parse(at) : decided?._tag === "Nak" ? decided.at : 0
        found.push(
          [
            endpoint,
            eventSeq,
            kind,
            record?.progress.attempts ?? progress.attempts ?? 0,
            waits,
            decided?._tag === "Trying" ? "trying" : "-",
            header.get("petrel-deadline"),
            header.get("traceparent"),
            header.get("content-type"),
            header.get("petrel-revision")
          ].join(" ")
        )
      }
    }
  return found
})

const expected = (endpoint: string): ReadonlyArray<string> => {
  const rest = `${now + 72 * hour} ${traceparent} text/plain 7`
  return [
    `${endpoint} 1 deliveries 0 0 - ${rest}`,
    `${endpoint} 2 deliveries 3 ${now + hour} - ${rest}`,
    `${endpoint} 3 deliveries 3 0 trying ${rest}`,
    `${endpoint} 6 deliveries 3 ${now + 2 * hour} - ${rest}`,
    ...[7, 8, 9].map((eventSeq) => `${endpoint} ${eventSeq} backlog 3 0 - ${rest}`)
  ]
}

/** Where partitions stay, what has ended may still lie there: its next owner knows. */
const waits = (line: string) => !/^\S+ (4|10) /.test(line)

const to = (partitions: number) => repartition({ to: partitions, tell: () => Effect.void })

/** Changes the number of partitions with a crash at each so many steps, until it comes to its end. */
const withCrashes = Effect.fnUntraced(function* (partitions: number, distance: number) {
  let crashes = 0
  while (true) {
    let arrivals = 0
    const checkpoint = () => {
      if (++arrivals === distance) throw new Error("crash")
    }
    const exit = yield* Effect.exit(Effect.provideService(to(partitions), Checkpoint, checkpoint))
    if (Exit.isSuccess(exit)) return crashes
    if (arrivals < distance) return yield* Effect.die(exit.cause)
    crashes++
    // For longer than the broker knows the ids of messages.
    yield* Effect.sleep("220 millis")
  }
})

const sorted = (lines: ReadonlyArray<string>) => lines.toSorted()

describe.concurrent("a change of the number of partitions", () => {
  for (const distance of [4, 9])
    scenario(
      `moves each delivery once with what is known of it, though it dies at each ${distance} steps`,
      () =>
        Effect.gen(function* () {
          yield* Effect.forEach(endpoints, fill, { concurrency: 4 })
          for (const partitions of [many, few]) {
            const crashes = yield* withCrashes(partitions, distance)
            assert.isAbove(crashes, 1)
            assert.strictEqual((yield* readLayout).partitions, partitions)
            assert.strictEqual((yield* findPartitions).begun, partitions)
            const found = yield* inventory(partitions)
            assert.deepStrictEqual(sorted(found.filter(waits)), sorted(endpoints.flatMap(expected)))
            for (const endpoint of endpoints)
              assert.deepStrictEqual(
                found
                  .filter((line) => line.startsWith(`${endpoint} `) && line.includes(" backlog "))
                  .filter(waits)
                  .map((line) => line.split(" ")[1]),
                ["7", "8", "9"]
              )
          }
          assert.lengthOf(yield* deadLetters, endpoints.length)
          const told = (yield* allFacts).filter(({ kind }) => kind === "attempt-failed")
          assert.lengthOf(told, endpoints.length)
        }),
      { partitions: from, moveDedupe: 200 }
    )

  scenario(
    "leaves to the router what was begun: it finds what was stored before",
    () =>
      Effect.gen(function* () {
        const facts = yield* Facts
        const { ask, js, names } = yield* Broker
        yield* ask("publish", () => js.publish(`${names.eventRoot}.acme.a`, "{}"))
        const planned = endpoints.map((id) => ({
          id,
          generation: "g",
          revision: 7,
          deadline: now + 72 * hour
        }))
        const plan = { part: 0, last: true, endpoints: planned, skipped: [] }
        yield* facts.append(
          { v: 1, kind: "routed", at: now, tenant: "acme", endpoint: "_", eventSeq: 1, plan },
          "routed.1.0"
        )
        const sent = endpoints.slice(0, 3)
        yield* Effect.forEach(sent, (id, index) =>
          put(index % 2 === 0 ? "deliveries" : "backlog", delivery(id, 1))
        )
        yield* to(many)
        const begun = yield* makeBegun(many, 60_000)
        const known = yield* begun.of(1, false)
        assert.deepStrictEqual([...(known?.sent ?? [])].sort(), sent)
      }),
    { partitions: from }
  )

  scenario(
    "says what it would move, and moves nothing, where it is only asked",
    () =>
      Effect.gen(function* () {
        yield* Effect.forEach(endpoints, fill, { concurrency: 4 })
        const before = yield* inventory(from)
        const moving = endpoints.filter(
          (id) => partitionOf("acme", id, from) !== partitionOf("acme", id, many)
        )
        const { moves } = yield* planRepartition(many)
        const sum = (what: "queue" | "schedules" | "backlog") =>
          moves.reduce((all, move) => all + move[what], 0)
        assert.deepStrictEqual(
          [sum("queue"), sum("schedules"), sum("backlog")],
          [5 * moving.length, moving.length, 4 * moving.length]
        )
        assert.deepStrictEqual(yield* inventory(from), before)
      }),
    { partitions: from }
  )

  scenario(
    "moves each of many schedules once",
    () =>
      Effect.gen(function* () {
        const [id = ""] = endpoints.filter(
          (id) => partitionOf("acme", id, from) !== partitionOf("acme", id, many)
        )
        yield* Effect.forEach(
          Array.from({ length: 800 }, (_, index) => index),
          (index) => put("deliveries", delivery(id, index, tried(now + hour)), now + hour),
          { concurrency: 64, discard: true }
        )
        const { moved } = yield* to(many)
        assert.strictEqual(
          moved.reduce((sum, { ended, schedules }) => sum + schedules + ended, 0),
          800
        )
        assert.lengthOf(yield* inventory(many), 800)
      }),
    { partitions: from }
  )

  scenario(
    "takes a schedule that fires meanwhile along, once",
    () =>
      Effect.gen(function* () {
        const soon = (yield* Clock.currentTimeMillis) + 400
        const ids = Array.from({ length: 60 }, (_, index) => `soon-${index}`)
        yield* Effect.forEach(
          ids,
          (id, index) => put("deliveries", delivery(id, 1, tried(soon)), soon + index * 5),
          { concurrency: 16 }
        )
        yield* to(many)
        yield* to(few)
        const found = yield* inventory(few)
        assert.deepStrictEqual(sorted(found.map((line) => nth(line.split(" "), 0))), sorted(ids))
      }),
    { partitions: from }
  )

  scenario(
    "removes no partition while something could still be put into it",
    (place) =>
      Effect.gen(function* () {
        const broker = yield* place.connection
        const { js, names } = broker
        const { streams } = broker.jsm
        const remove = streams.delete.bind(streams)
        const late: Array<string> = []
        streams.delete = async (stream) => {
          for (const subject of [
            names.subjects.delivery(few, "acme", "late"),
            names.subjects.later(few, "late"),
            names.subjects.backlog(few, "acme", "late")
          ]) {
            const stored = await js.publish(subject, "late").then(
              () => "stored",
              () => "refused"
            )
            late.push(`${subject} is ${stored}`)
          }
          return remove(stream)
        }
        yield* Effect.provideService(to(few), Broker, broker)
        assert.lengthOf(late, 6)
        for (const said of late) assert.match(said, / is refused$/)
      }),
    { partitions: from }
  )
})
