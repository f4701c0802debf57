import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Exit } from "effect"
import { vi } from "vitest"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { Failpoint } from "../../../src/broker/failpoint.ts"
import { findPartitions, readLayout } from "../../../src/broker/installed.ts"
import { noteOwner } from "../../../src/delivery/recovery/backlog-owners.ts"
import { labelHeaders } from "../../../src/domain/backlog-message.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import { deliveryHeaders } from "../../../src/domain/delivery.ts"
import { type Fact, type Place, placeName } from "../../../src/domain/fact.ts"
import { partitionOf } from "../../../src/domain/names.ts"
import { Facts } from "../../../src/history/facts.ts"
import { planId } from "../../../src/history/plans.ts"
import { planRepartition, repartition } from "../../../src/operations/repartition/repartition.ts"
import { makePartialRoutings } from "../../../src/routing/partial-routing.ts"
import {
  delivery,
  endpoints,
  expected,
  fill,
  from,
  hour,
  inventory,
  now,
  put,
  tried
} from "../../delivery/waiting-before.ts"
import { allFacts, idsForgotten } from "../../kit/consistency.ts"
import { deadLetters, nth } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const [few, many] = [3, 8]

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
    const exit = yield* Effect.exit(Effect.provideService(to(partitions), Failpoint, checkpoint))
    if (Exit.isSuccess(exit)) return crashes
    if (arrivals < distance) return yield* Effect.die(exit.cause)
    crashes++
    yield* idsForgotten
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
    "moves what a former owner stored late in a backlog, unless it ended or goes on elsewhere",
    () =>
      Effect.gen(function* () {
        const facts = yield* Facts
        const { jsm, names, publisher, ask } = yield* natsClients
        const home = (endpoint: string, count: number) => partitionOf("acme", endpoint, count)
        const endpoint = endpoints.find((one) => home(one, from) !== home(one, many)) ?? ""
        const partition = home(endpoint, from)
        for (const owner of [1, 2]) yield* noteOwner(partition, { owner, after: 0 })
        const all = [1, 2, 3, 4, 5].map((eventSeq) => delivery(endpoint, eventSeq))
        const [queued, , ended, again, replaced] = all
        const store = Effect.fnUntraced(function* (
          it: Delivery,
          origin: Place,
          owner: number,
          replaces: ReadonlyArray<number> = []
        ) {
          const label = labelHeaders({ stored: 1, owner, replaces })
          const headers = deliveryHeaders({ ...it, origin: placeName(origin) }, crypto.randomUUID())
          const subject = names.subjects.backlog(partition, "acme", endpoint)
          const body = `${it.eventSeq} for ${endpoint}`
          return yield* publisher.publish(subject, body, [...headers, ...label])
        })
        for (const it of all) {
          const place = yield* put("deliveries", it)
          const before = it === replaced ? [(yield* store(it, place, 2)).seq] : []
          yield* store(it, place, 1, before)
          if (it === again) yield* store(it, place, 2)
          if (it === queued) continue
          yield* ask("remove", () => jsm.streams.deleteMessage(place.stream, place.seq))
          const about = { tenant: "acme", endpoint, eventSeq: it.eventSeq, eventAt: now }
          const fact: Fact = { v: 1, kind: "delivered", at: now, ...about, round: "0", attempt: 1 }
          // It was sent from another place, so that only its round tells.
          const elsewhere = { ...place, seq: place.seq + 100 }
          if (it === ended) yield* facts.append({ ...fact, from: elsewhere }, "ended")
        }
        yield* to(many)
        const found = (yield* inventory(many)).map((line) => line.split(" ").slice(0, 3).join(" "))
        assert.deepStrictEqual(
          sorted(found),
          ["1 deliveries", "2 backlog", "4 backlog", "5 backlog"].map(
            (line) => `${endpoint} ${line}`
          )
        )
      }),
    { partitions: from }
  )

  scenario(
    "goes on where it was killed between closing a partition and removing it",
    () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const { ask, jsm, names } = yield* natsClients
        yield* Effect.forEach(endpoints, fill, { concurrency: 4 })
        yield* to(many)
        const crashAt = (step: string, arrival: number) => {
          let arrivals = 0
          return Effect.exit(
            Effect.provideService(to(few), Failpoint, (reached) => {
              if (reached === step && ++arrivals === arrival) throw new Error("crash")
            })
          )
        }
        const subjectsOf = (stream: string) =>
          ask("look", () => jsm.streams.info(stream)).pipe(
            Effect.map(({ config }) => config.subjects)
          )
        const isThere = (stream: string) => Effect.isSuccess(subjectsOf(stream))
        const { backlogOf, deliveriesOf, schedulesOf, removed } = names.subjects
        const [backlog, queue] = [names.backlog(few), names.deliveries(few)]

        assert.isTrue(Exit.isFailure(yield* crashAt("partition-closed", 1)))
        assert.deepStrictEqual(yield* subjectsOf(backlog), [removed(backlog)])
        assert.deepStrictEqual(yield* subjectsOf(queue), [removed(queue)])
        // The next run listens again before it looks for what is there.
        const opened: Array<unknown> = []
        yield* repartition({
          to: few,
          tell: ({ event }) =>
            event !== "counted"
              ? Effect.void
              : Effect.all([subjectsOf(backlog), subjectsOf(queue)]).pipe(
                  Effect.map((both) => opened.push(...both)),
                  Effect.orDie,
                  Effect.provideService(Broker, broker),
                  Effect.andThen(Effect.interrupt)
                )
        }).pipe(Effect.exit)
        assert.deepStrictEqual(opened, [[backlogOf(few)], [deliveriesOf(few), schedulesOf(few)]])

        assert.isTrue(Exit.isFailure(yield* crashAt("stream-removed", 1)))
        assert.deepStrictEqual([yield* isThere(backlog), yield* isThere(queue)], [false, true])
        yield* to(few)
        assert.deepStrictEqual([yield* isThere(backlog), yield* isThere(queue)], [false, false])
        assert.deepStrictEqual(yield* findPartitions, {
          partitions: few,
          begun: few,
          missing: []
        })
        const found = yield* inventory(few)
        assert.deepStrictEqual(sorted(found.filter(waits)), sorted(endpoints.flatMap(expected)))
      }),
    { partitions: from, moveDedupe: 200 }
  )

  scenario(
    "leaves to the router what was begun: it finds what was stored before",
    () =>
      Effect.gen(function* () {
        const facts = yield* Facts
        const { ask, js, names } = yield* natsClients
        yield* ask("publish", () => js.publish(`${names.eventRoot}.acme.a`, "{}"))
        const event = { eventSeq: 1, eventAt: now }
        const planned = endpoints.map((id) => ({
          id,
          generation: "g",
          revision: 7,
          deadline: now + 72 * hour
        }))
        const plan = { part: 0, last: true, endpoints: planned, skipped: [] }
        yield* facts.append(
          { v: 1, kind: "routed", at: now, tenant: "acme", endpoint: "_", ...event, plan },
          planId(event, 0)
        )
        const sent = endpoints.slice(0, 3)
        yield* Effect.forEach(sent, (id, index) =>
          put(index % 2 === 0 ? "deliveries" : "backlog", delivery(id, 1))
        )
        yield* to(many)
        const begun = yield* makePartialRoutings(many, names.routerConsumer)
        const known = yield* begun.of(event, 2)
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
          [6 * moving.length, moving.length, 4 * moving.length]
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
        const { js, jsm, names } = yield* Effect.provideService(natsClients, Broker, broker)
        const { streams } = jsm
        const remove = streams.delete.bind(streams)
        const late: Array<string> = []
        streams.delete = async (stream) => {
          for (const subject of [
            names.subjects.delivery(few, "acme", "late"),
            names.subjects.schedule(few, "late"),
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
