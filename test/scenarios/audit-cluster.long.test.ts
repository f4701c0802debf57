import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { afterAll, beforeAll, vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { audit } from "../../src/history/audit/audit.ts"
import type { Raised } from "../../src/history/audit/watch.ts"
import { watch } from "../../src/history/audit/watch.ts"
import { quiet } from "../kit/consistency.ts"
import { endpoint, eventually, installation, publish, quickRetry } from "../kit/engine.ts"
import { leaderIn } from "../kit/leaders.ts"
import type { TestCluster } from "../kit/nats-server.ts"
import { startCluster } from "../kit/nats-server.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet as silent } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 180_000 })

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

/** Some events are refused, and some at first. */
const statusOf = ({ headers }: Received): number => {
  const number = Number(String(headers["webhook-id"]).split("-").at(-1))
  if (number % 11 === 0) return 400
  return number % 5 === 0 && headers["petrel-attempt"] === "1" ? 503 : 200
}

const leaderOf = (stream: string) => leaderIn(cluster, stream)

/** Lets another server lead a stream. */
const stepDown = Effect.fnUntraced(function* (stream: string) {
  const { ask, connection } = yield* natsClients
  const before = yield* leaderOf(stream)
  yield* ask("step down", () => connection.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`))
  yield* eventually(leaderOf(stream), (now) => now !== before)
})

describe("audits on a cluster of three brokers", () => {
  it.live("raise no false alarm while leaders change and one is killed", () => {
    const place = installation(cluster, { replicas: 3 })
    return Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver({ answer: (request) => ({ status: statusOf(request) }) })
      yield* endpoint({ url: hook.url, retry: quickRetry({ maxAttempts: 100 }) })
      yield* (yield* workerProcess(place, { leaseTtl: 2_000 })).delivering

      let [published, looks, audits] = [0, 0, 0]
      let isOver = false
      const raised: Array<Raised> = []
      const failures: Array<string> = []
      yield* watch({}, 100, {
        raised: (each) => Effect.sync(() => void raised.push(each)),
        failed: (why) => Effect.sync(() => void failures.push(why)),
        looked: () => Effect.sync(() => void looks++)
      }).pipe(Effect.forkScoped)
      const publisher = yield* Effect.forkScoped(
        Effect.gen(function* () {
          while (!isOver) {
            const id = `acme-${published + 1}`
            yield* publish("paid", id, { "Nats-Msg-Id": id }).pipe(Effect.eventually)
            published++
            yield* Effect.sleep("20 millis")
          }
        })
      )
      const auditor = yield* Effect.forkScoped(
        Effect.gen(function* () {
          while (!isOver) {
            // Who does not lead any more does not answer: then there is no audit.
            const done = yield* audit({}).pipe(
              Effect.catchTag("BrokerError", () => Effect.undefined)
            )
            if (done === undefined) continue
            assert.deepStrictEqual(done.judgement.problems.list, [])
            audits++
          }
        })
      )
      for (const stream of [names.history, names.events, names.deliveries(0), names.dead]) {
        yield* hook.received(hook.requests.length + 50)
        yield* stepDown(stream)
      }
      yield* hook.received(hook.requests.length + 50)
      const killed = yield* leaderOf(names.history)
      yield* Effect.promise(killed.kill9)
      yield* hook.received(hook.requests.length + 50)
      yield* Effect.promise(killed.restart)
      yield* hook.received(hook.requests.length + 50)
      isOver = true
      yield* Fiber.join(publisher)
      yield* Fiber.join(auditor)
      assert.isAtLeast(audits, 3)

      yield* quiet
      const seen = looks
      yield* eventually(
        Effect.sync(() => looks),
        (now) => now >= seen + 2
      )
      assert.deepStrictEqual(raised, [])
      assert.deepStrictEqual(
        failures.filter((why) => why.includes("lost the end")),
        []
      )
      const { judgement } = yield* audit({})
      assert.strictEqual(judgement.verdict, "clean")
      const { begun, deadLettered, delivered } = judgement.tally
      const refused = Math.floor(published / 11)
      assert.deepStrictEqual(
        { begun, delivered, deadLettered },
        { begun: published, delivered: published - refused, deadLettered: refused }
      )
    }).pipe(place.run, Effect.provide(silent))
  })
})
