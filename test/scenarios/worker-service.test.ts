import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { Facts } from "../../src/history/facts.ts"
import { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"
import { offerWorkerFigures } from "../../src/worker/worker-service.ts"
import { endpoint, history, publish, quickRetry, testTopology, worker } from "../kit/engine.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer, quiet } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Starts a worker that tells its numbers. */
const tellingWorker = (id: string) =>
  Effect.gen(function* () {
    const metrics = new WorkerMetrics()
    const started = yield* worker({ id, metrics })
    yield* offerWorkerFigures(started, { id, roles: ["router", "deliver"] }, metrics)
    return started
  })

describe.concurrent("a worker, asked for its statistics", () => {
  scenario("tells what it delivered, what failed, how long that took, and what it owns", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ url, types: ["a"], retry: quickRetry() })
      const refused = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "refused", url: refused.url, types: ["a"] })
      const facts = yield* history
      const { delivering } = yield* tellingWorker("w1")
      const partitions = yield* delivering
      yield* publish("a", "1")
      yield* facts.count("delivered", 1)
      yield* facts.count("dead-lettered", 1)
      const { connection, names } = yield* natsClients
      const { root, worker: subject } = names.subjects
      const name = `${root}-worker`
      const ping = yield* askOverNats(connection, `$SRV.PING.${name}`)
      assert.deepInclude(ping.json, { name, type: "io.nats.micro.v1.ping_response" })
      assert.deepInclude(ping.json.metadata, { worker: "w1", roles: "router,deliver" })
      const info = yield* askOverNats(connection, `$SRV.INFO.${name}`)
      const [told] = info.json.endpoints as ReadonlyArray<object>
      assert.deepInclude(told, { name: "attempts", subject: subject("w1") })
      const stats = yield* askOverNats(connection, `$SRV.STATS.${name}`)
      const [figures] = stats.json.endpoints as ReadonlyArray<Record<string, unknown>>
      assert.deepInclude(figures, { num_requests: 3, num_errors: 2 })
      assert.isAbove(Number(figures?.processing_time), 0)
      const numbers = {
        ...{ worker: "w1", partitions, problems: [] },
        ...{ routed: 1, attempts: 3, failures: 2, delivered: 1, deadLettered: 1, inFlight: 0 }
      }
      assert.deepInclude(figures?.data, numbers)
      assert.deepInclude((yield* askOverNats(connection, subject("w1"))).json, numbers)
    })
  )

  it.live("does its work also where the broker does not permit it to answer", () =>
    Effect.gen(function* () {
      const permission = '            "$SRV.>", "petrel.worker.*"\n'
      const server = yield* Effect.acquireRelease(
        Effect.promise(() =>
          startWithAccounts((text) => {
            assert.include(text, permission)
            return text.replace(permission, "")
          })
        ),
        ({ stop }) => Effect.promise(stop)
      )
      const connectionOf = (url: string) =>
        connectTo({ url, prefix: "PETREL_", eventRoot: "events", publishTimeoutMs: 1_000 })
      yield* Effect.gen(function* () {
        yield* init(testTopology)
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url, types: ["a"] })
        const asWorker = yield* Layer.build(Layer.fresh(connectionOf(server.url("worker"))))
        yield* Effect.provideContext(tellingWorker("w1"), asWorker)
        yield* publish("a", "1")
        yield* hook.received(1)
        const { names } = yield* Broker
        assert.isTrue(server.violations.some((line) => line.includes(names.subjects.worker("w1"))))
      }).pipe(
        Effect.scoped,
        Effect.provide(Facts.layer.pipe(Layer.provideMerge(connectionOf(server.url("operator"))))),
        Effect.provide(quiet)
      )
    }).pipe(Effect.scoped)
  )
})
