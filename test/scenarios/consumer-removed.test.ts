import { assert, describe } from "@effect/vitest"
import type { ConsumerConfig } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Deferred, Effect, Schedule } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { init } from "../../src/broker/init.ts"
import { clockOf } from "../../src/broker/kept-since.ts"
import { readValue } from "../../src/broker/values.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import {
  closedCircuit,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  quickRetry,
  testTopology,
  worker,
  workersApart
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const removeConsumer = (stream: string, consumer: string) =>
  Effect.flatMap(natsClients, ({ ask, jsm }) =>
    ask("remove", () => jsm.consumers.delete(stream, consumer))
  )

const isClean = Effect.gen(function* () {
  const { judgement } = yield* audit({})
  assert.deepStrictEqual(judgement.problems.list, [])
  assert.strictEqual(judgement.tally.repeated, 0)
})

/** Waits until it is noted that events up to a sequence are routed. */
const noted = Effect.fnUntraced(function* (seq: number) {
  const { names } = yield* Broker
  yield* readValue(names.buckets.workers, "router.position").pipe(
    Effect.repeat({
      until: (entry) => entry?.string().includes(`"seq":${seq},`) === true,
      schedule: Schedule.spaced(200)
    })
  )
})

const moveDedupe = 1_000

/** Waits until the broker has forgotten the ids of what the history holds. */
const forgotten = (dedupe: number) =>
  Effect.gen(function* () {
    const { names, streamInfo } = yield* Broker
    return yield* streamInfo("look", names.history)
  }).pipe(
    Effect.repeat({
      until: (info) => clockOf(info) - Date.parse(info.state.last_ts) > 2 * dedupe,
      schedule: Schedule.spaced(100)
    })
  )

/** Changes a consumer as other tools do. */
const changeConsumer = (stream: string, consumer: string, changes: Partial<ConsumerConfig>) =>
  Effect.flatMap(natsClients, ({ ask, jsm }) =>
    ask("change", () => jsm.consumers.update(stream, consumer, changes))
  )

const problems = Effect.map(readStatus, (status) =>
  status.problems.map(({ code, text }) => `${code}: ${text}`).join("\n")
)

describe("a consumer that somebody changed", () => {
  scenario("so that it leaves events out is made again by init where the filter began", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker()
      yield* publishMany(20, "invoice.before")
      yield* facts.count("delivered", 20)
      yield* noted(20)
      const filter_subject = `${names.eventRoot}.acme.invoice.passed`
      yield* changeConsumer(names.events, names.routerConsumer, { filter_subject })
      yield* publishMany(5, "invoice.left-out")
      yield* publishMany(5, "invoice.passed")
      yield* facts.count("delivered", 25)
      assert.match(yield* problems, /^consumer-changed: .*the routers .*\(filter_subject\)/m)
      // By now it would be noted that all events before those are routed.
      yield* Effect.sleep("11 seconds")
      const changes = yield* init(testTopology)
      assert.deepStrictEqual(
        changes.filter(({ change }) => change !== "unchanged").map(({ fields }) => fields),
        [["filter_subject"]]
      )
      yield* facts.count("delivered", 30)
      assert.notInclude(yield* problems, "consumer-changed")
      yield* isClean
      assert.lengthOf(hook.requests, 30)
    })
  )

  scenario("so that it hands nothing out is said, and init lets it go on", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { ask, jsm } = yield* natsClients
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 1_000 }),
        circuit: closedCircuit
      })
      const facts = yield* history
      yield* worker()
      yield* publishMany(3)
      yield* facts.count("attempt-failed", 3)
      const index = partitionOf("acme", "hook", testTopology.partitions)
      const paused = [
        [names.events, names.routerConsumer],
        [names.deliveries(index), names.deliverConsumer]
      ] as const
      for (const [stream, consumer] of paused)
        yield* ask("pause", () =>
          jsm.consumers.pause(stream, consumer, new Date(Date.now() + 3_600_000))
        )
      hook.answer({ status: 200 })
      yield* publishMany(3, "invoice.later")
      assert.match(
        yield* problems,
        new RegExp(`^consumer-changed: .*the routers, partition ${index} .*\\(pause_until\\)`, "m")
      )
      yield* init(testTopology)
      yield* facts.count("delivered", 6)
      assert.notInclude(yield* problems, "consumer-changed")
      yield* isClean
    })
  )
})

/** What other tools may set of a consumer, and by which it hands out nothing, or nothing for long. */
const withholding: ReadonlyArray<readonly [Partial<ConsumerConfig>, string]> = [
  [{ max_batch: 1 }, "max_batch"],
  [{ max_expires: nanos(1) }, "max_expires"],
  [{ max_bytes: 1 }, "max_bytes"],
  [{ max_ack_pending: 1 }, "max_ack_pending"],
  [{ backoff: [nanos(3_600_000)] }, "backoff"],
  [{ inactive_threshold: nanos(3_600_000) }, "inactive_threshold"],
  [{ priority_policy: "overflow", priority_groups: ["a"] }, "priority_policy"]
]

describe.concurrent("a consumer that somebody changed so that it withholds messages", () => {
  for (const [change, field] of withholding)
    scenario(`is named by the status, and changed back by init: ${field}`, () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* workersApart()
        yield* publishMany(3)
        yield* facts.count("delivered", 3)
        const index = partitionOf("acme", "hook", testTopology.partitions)
        yield* changeConsumer(names.events, names.routerConsumer, change)
        yield* changeConsumer(names.deliveries(index), names.deliverConsumer, change)
        assert.match(
          yield* problems,
          new RegExp(`^consumer-changed: .*the routers, partition ${index} .*\\(${field}\\)`, "m")
        )
        yield* publishMany(3, "invoice.later")
        yield* init(testTopology)
        yield* facts.count("delivered", 6)
        assert.strictEqual(yield* problems, "")
        yield* isClean
      })
    )

  for (const which of ["routers", "partition"] as const)
    scenario(`and hands out headers only, has nothing delivered without its body: ${which}`, () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        const deliver = yield* Effect.andThen(
          worker({ id: "routes", roles: ["router"] }),
          worker({ roles: ["deliver"] })
        )
        const index = partitionOf("acme", "hook", testTopology.partitions)
        const [stream, consumer] =
          which === "routers"
            ? [names.events, names.routerConsumer]
            : [names.deliveries(index), names.deliverConsumer]
        yield* changeConsumer(stream, consumer, { headers_only: true })
        yield* publishMany(5)
        assert.match(yield* problems, /^consumer-changed: .*\(headers_only\)/m)
        if (which === "partition")
          yield* eventually(Effect.sync(deliver.problems), (said) => said.length > 0)
        yield* init(testTopology)
        yield* facts.count("delivered", 5)
        assert.strictEqual(yield* problems, "")
        yield* isClean
        assert.deepStrictEqual(hook.requests.map(({ body }) => body.toString()).toSorted(), [
          ...["0", "1", "2", "3", "4"]
        ])
      })
    )

  scenario("hands out what a publisher has given the header of such a message", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* workersApart()
      yield* publish("empty", "", { "Nats-Msg-Size": "5" })
      yield* publish("full", "x", { "Nats-Msg-Size": "5" })
      yield* hook.received(2)
    })
  )
})

describe("a consumer that somebody removed", () => {
  scenario("of the routers is made again where they were, and nothing is delivered twice", () =>
    Effect.gen(function* () {
      const { consumerInfo, names } = yield* Broker
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* worker()
          yield* publishMany(20, "invoice.before")
          yield* facts.count("delivered", 20)
          yield* noted(20)
        })
      )
      yield* removeConsumer(names.events, names.routerConsumer)
      const { problems } = yield* readStatus
      assert.include(problems.map(({ code }) => code).join(), "router-consumer-missing")
      yield* worker()
      yield* publishMany(5, "invoice.after")
      yield* facts.count("delivered", 25)
      const { config } = yield* consumerInfo("look", names.events, names.routerConsumer)
      assert.strictEqual(config.opt_start_seq, 21)
      assert.lengthOf(hook.requests, 25)
      yield* isClean
    })
  )

  scenario(
    "and init makes again delivers nothing twice, though the broker has forgotten the plans' ids",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        // This one has looked how far routing is, and pulls once the consumer is another one.
        const opened = yield* Deferred.make<void>()
        const looked = yield* Deferred.make<void>()
        const late = yield* alteredBroker(({ pull }) => ({
          pull: (options) =>
            pull(
              options.name === "the router"
                ? {
                    ...options,
                    demand: Effect.tap(options.demand, () =>
                      Effect.andThen(Deferred.succeed(looked, undefined), Deferred.await(opened))
                    )
                  }
                : options
            )
        }))
        yield* worker({ id: "late" }).pipe(Effect.provideService(Broker, late))
        yield* Deferred.await(looked)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker({ id: "early" })
            yield* publishMany(20, "invoice.before")
            yield* facts.count("delivered", 20)
          })
        )
        yield* removeConsumer(names.events, names.routerConsumer)
        yield* init({ ...testTopology, moveDedupe })
        yield* forgotten(moveDedupe)
        yield* Deferred.succeed(opened, undefined)
        yield* publishMany(5, "invoice.after")
        yield* facts.count("delivered", 25)
        yield* isClean
        assert.lengthOf(hook.requests, 25)
      }),
    { moveDedupe }
  )

  scenario("of a partition is made again, and what waits there goes on", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      let isDown = true
      const hook = yield* receiver({
        answer: () => ({ status: isDown ? 503 : 200 })
      })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 1_000 }),
        circuit: closedCircuit
      })
      const facts = yield* history
      yield* worker()
      yield* publishMany(10)
      yield* facts.count("attempt-failed", 10)
      const index = partitionOf("acme", "hook", testTopology.partitions)
      yield* removeConsumer(names.deliveries(index), names.deliverConsumer)
      isDown = false
      yield* facts.count("delivered", 10)
      yield* isClean
    })
  )

  scenario("of each partition, while no worker ran, is made again by the next one", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url: hook.url, retry: quickRetry({ maxAttempts: 1_000 }) })
      const facts = yield* history
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* worker()
          yield* publishMany(10)
          yield* facts.count("attempt-failed", 10)
        })
      )
      for (let index = 0; index < testTopology.partitions; index++)
        yield* removeConsumer(names.deliveries(index), names.deliverConsumer)
      hook.answer({ status: 200 })
      yield* worker()
      yield* facts.count("delivered", 10)
      yield* isClean
    })
  )
})
