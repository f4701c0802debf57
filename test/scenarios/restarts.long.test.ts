import { assert, describe } from "@effect/vitest"
import { Effect, Option } from "effect"
import { vi } from "vitest"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { crashBroker } from "../kit/broker-crash.ts"
import { consistentRounds, noRecords } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publishMany,
  quickRetry
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { owners } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 4 })

const leaseTtl = 2_000
const maxInFlight = 5
/** What was answered and has no fact yet is sent again, too: 8 for each request at most (docs/reference/limits.md). */
const maxRepeats = 9 * maxInFlight

describe.concurrent("a broker that is killed and comes back", () => {
  outage("finds an open circuit as it was, and its worker too", (place, server) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503 } })
      const coolDown = "6 seconds"
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ backoff: { kind: "fixed", delay: "1 second" }, maxAttempts: 100 }),
        circuit: { failures: 3, coolDown, maxCoolDown: coolDown }
      })
      const facts = yield* history
      const first = yield* workerProcess(place, { id: "w1", leaseTtl })
      yield* publishMany(3, "a")
      yield* facts.count("circuit-opened", 1)
      yield* publishMany(200, "b")
      yield* eventually(backlogged, (count) => count >= 200)
      const { health } = yield* readHealth("acme", "hook")
      assert.strictEqual(health?.circuit.state, "open")

      yield* crashBroker(server)
      yield* publishMany(10, "c")
      assert.deepStrictEqual((yield* readHealth("acme", "hook")).health, health)
      yield* first.kill9
      yield* crashBroker(server)
      assert.deepStrictEqual((yield* readHealth("acme", "hook")).health, health)
      yield* workerProcess(place, { id: "w2", leaseTtl })
      hook.answer({ status: 200 })
      yield* hook.received(213)
      const [, , , probe] = hook.requests
      assert.isAtLeast(probe?.at ?? 0, health?.circuit.until ?? 0)
      assert.lengthOf(yield* consistentRounds, 213)
      assert.lengthOf(hook.requests, 216)
      yield* noRecords
      yield* eventually(readHealth("acme", "hook"), ({ health }) => health === undefined)
    })
  )

  for (const [who, killsWorker] of [
    ["its worker loses and repeats nothing", false],
    ["its worker with it, loses nothing and repeats what was in flight", true]
  ] as const)
    outage(`again and again while a backlog drains: ${who}`, (place, server) =>
      Effect.gen(function* () {
        const count = 1_200
        const hook = yield* gate
        yield* endpoint({ url: hook.url, maxInFlight })
        const start = workerProcess(place, { leaseTtl })
        let worker = yield* start
        yield* publishMany(count)
        yield* eventually(backlogged, (waiting) => waiting >= count - 200)
        yield* hook.open
        let crashes = 0
        for (const sent of [200, 600]) {
          yield* hook.received(sent)
          if (killsWorker) yield* worker.kill9
          yield* crashBroker(server)
          crashes++
          if (killsWorker) worker = yield* start
        }
        assert.isBelow(hook.requests.length, count)
        assert.lengthOf(yield* consistentRounds, count)
        const repeats = hook.requests.length - count
        assert.isAtMost(repeats, killsWorker ? crashes * maxRepeats : 0)
        assert.isAtMost(hook.now.most, maxInFlight)
        yield* noRecords
        assert.isAbove((yield* owners(2)).filter((owner) => owner === "crashing").length, 1)
      })
    )

  outage(
    "while owners change leaves one for each partition, and their backlogs whole",
    (place, server) =>
      Effect.gen(function* () {
        // Enough that some are left when the second worker has its partition and the broker is back.
        const count = 2_500
        const hook = yield* gate
        const endpoints = ["a", "b", "c", "d"]
        yield* Effect.forEach(endpoints, (id) =>
          endpoint({ id, url: `${hook.url}/${id}`, maxInFlight })
        )
        yield* workerProcess(place, { id: "w1", leaseTtl })
        yield* publishMany(count)
        yield* eventually(backlogged, (waiting) => waiting >= endpoints.length * (count - 200))
        yield* hook.open
        yield* hook.received(100)
        yield* workerProcess(place, { id: "w2", leaseTtl })
        yield* eventually(owners(2), (all) => !all.every((owner) => owner === "w1"))
        yield* crashBroker(server)
        yield* eventually(
          Effect.option(owners(2)),
          (all) => Option.isSome(all) && all.value.join() === "w2,w1"
        )
        assert.isBelow(hook.requests.length, endpoints.length * count)
        const accounts = yield* consistentRounds
        assert.lengthOf(accounts, endpoints.length * count)
        assert.lengthOf(hook.requests, accounts.length)
        assert.isAtMost(hook.now.most, endpoints.length * maxInFlight)
        yield* noRecords
      })
  )
})
