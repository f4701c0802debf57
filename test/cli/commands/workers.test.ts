import { hostname } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { readValue, writeValue } from "../../../src/broker/values.ts"
import { listWorkers } from "../../../src/operations/status/workers.ts"
import { endpoint, eventually, nth, publishMany, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const place = installations()

describe("petrel workers", () => {
  it.live("says who is there, since when, what each owns, and how much of it is under way", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const slow = yield* receiver({
          answer: () => Effect.runPromise(Effect.as(Deferred.await(gate), {}))
        })
        // What stands in line goes to the backlog after a second.
        yield* endpoint({ url: slow.url, maxInFlight: 5 })
        // Published before a worker delivers, events go through the queue, whose deliveries are told.
        yield* publishMany(5)
        const before = Date.now()
        yield* worker({ leaseTtl: 1_000 })
        yield* eventually(listWorkers, ({ workers }) =>
          workers.some(
            ({ partitions }) =>
              partitions.some(({ inMemory }) => inMemory === 5) &&
              partitions.every(({ delivering }) => delivering)
          )
        )
        const { out } = yield* run("workers", "--json", ...flags)
        assert.lengthOf(out, 1)
        const { partitions, startedAt, ...rest } = parse(nth(out, 0))
        assert.deepStrictEqual(rest, {
          worker: "w1",
          alive: true,
          host: hostname(),
          pid: process.pid,
          roles: ["router", "deliver"],
          leaving: false
        })
        assert.isAtLeast(Date.parse(String(startedAt)), before)
        assert.deepStrictEqual(partitions, [
          { partition: 0, delivering: true, inFlight: 5, inMemory: 5 },
          { partition: 1, delivering: true, inFlight: 0, inMemory: 0 }
        ])

        const text = yield* run("workers", ...flags)
        assert.strictEqual(text.code, 0)
        assert.lengthOf(text.out, 2)
        assert.match(
          nth(text.out, 1),
          new RegExp(`^w1 +\\S+ +${process.pid} +\\S.* +router,deliver +0,1 +0,1 +5 +5$`)
        )
        yield* Deferred.succeed(gate, undefined)
      })
    )
  })

  it.live(
    "tells what a worker owns from where it delivers, while it takes a partition over",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const { names } = yield* Broker
          const { delivering } = yield* worker({ leaseTtl: 1_000 })
          yield* delivering
          const entry = yield* readValue(names.buckets.workers, "owner.1")
          // As while the history is read: the lease is held, and no heartbeat has the partition yet.
          const beat = { v: 1, id: "w2", instance: "x", roles: ["deliver"], host: "h", pid: 1 }
          const said = { ...beat, startedAt: 0, partitions: [] }
          yield* writeValue(names.buckets.workers, "worker.w2", JSON.stringify(said))
          const lease = JSON.stringify({ worker: "w2", instance: "x" })
          yield* writeValue(names.buckets.workers, "owner.1", lease, { ttl: 60_000 })
          assert.isDefined(entry)
          const { out } = yield* run("workers", ...flags)
          assert.match(nth(out, 2), /^w2 +h +1 +\S.* +deliver +1 +- +0 +0$/)
        })
      )
    }
  )

  it.live("names the partitions that nobody owns, and who is gone but not out of time", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const none = yield* run("workers", ...flags)
        assert.strictEqual(none.code, 0)
        assert.deepStrictEqual(none.err, ["No worker is running."])
        assert.lengthOf(none.out, 1)
        assert.match(nth(none.out, 0), /^Partitions 0, 1 have no worker/)

        yield* writeValue(
          names.buckets.workers,
          "owner.1",
          JSON.stringify({ worker: "dead", instance: "x" })
        )
        const { out } = yield* run("workers", "--json", ...flags)
        assert.deepStrictEqual(
          out.map((line) => parse(line)),
          [
            {
              worker: "dead",
              alive: false,
              partitions: [{ partition: 1, delivering: false, inFlight: 0, inMemory: 0 }]
            },
            { unowned: [0] }
          ]
        )
      })
    )
  })
})
