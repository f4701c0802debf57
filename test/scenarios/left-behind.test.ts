import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { isClean, storedWatermark } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  lateRetry,
  publish,
  quickRetry,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { attempts } from "../kit/outcomes.ts"
import { powerCut } from "../kit/power-cut.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, outage } from "../kit/scenario.ts"

/** What the only queue holds, and what its consumer accounts for. */
const queue = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const stream = names.deliveries(0)
  const { state } = yield* ask("look at the queue", () => jsm.streams.info(stream))
  const consumer = yield* ask("look at the consumer", () =>
    jsm.consumers.info(stream, names.deliverConsumer)
  )
  return { stored: state.messages, held: consumer.num_pending + consumer.num_ack_pending }
})

const restsWithOne = ({ held, stored }: Effect.Success<typeof queue>) => stored === 1 && held === 1

/** Acknowledges the second message in place of its owner. */
const takenByStranger = Effect.gen(function* () {
  const { ask, js, names } = yield* natsClients
  yield* ask("be a stranger", async () => {
    const consumer = await js.consumers.get(names.deliveries(0), names.deliverConsumer)
    for (let seq = 0; seq !== 2; )
      for await (const message of await consumer.fetch({ max_messages: 1 })) {
        seq = message.seq
        if (seq === 2) await message.ackAck()
      }
  })
})

/** Queues a delivery that will fail and wait, and one behind it that will not. */
const queueTwo = Effect.gen(function* () {
  const failing = yield* receiver({ answer: { status: 503 } })
  const hook = yield* receiver()
  yield* endpoint({ id: "late", url: failing.url, types: ["late"], retry: lateRetry })
  const retry = quickRetry({ backoff: { kind: "fixed", delay: "2 seconds" } })
  yield* endpoint({ url: hook.url, types: ["hook"], retry })
  const facts = yield* history
  yield* worker({ id: "routes", roles: ["router"] })
  yield* publish("late")
  yield* publish("hook")
  yield* eventually(waitingMessages, (count) => count === 2)
  return { hook, facts }
})

describe.concurrent("a retry that its consumer has passed", () => {
  outage(
    "is delivered where the consumer accounts for a message that is gone",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const power = powerCut(server, [names.deliveries(0)], { keepsConsumers: true })
        const { facts, hook } = yield* queueTwo
        yield* power.remember
        hook.answer(byAttempt(503, 200))
        const first = yield* worker({ id: "first", roles: ["deliver"] })
        yield* facts.count("attempt-failed", 2)
        yield* first.stop
        yield* takenByStranger
        yield* eventually(queue, restsWithOne)
        yield* Effect.promise(server.restart)
        yield* power.cut
        assert.deepStrictEqual(yield* queue, { stored: 2, held: 1 })
        const miscounting = yield* alteredBroker(({ consumerInfo }) => ({
          consumerInfo: (operation, stream, consumer) =>
            Effect.map(consumerInfo(operation, stream, consumer), (info) => ({
              ...info,
              num_ack_pending: info.num_ack_pending + 1
            }))
        }))
        yield* Effect.provideService(worker({ roles: ["deliver"] }), Broker, miscounting)
        yield* facts.count("delivered", 1)
        yield* eventually(queue, restsWithOne)
        assert.deepStrictEqual(attempts(hook), [1, 2])
        assert.deepInclude(yield* isClean, { delivered: 1, repeated: 0, pending: 1 })
      }),
    { ackWait: 300, partitions: 1 }
  )
})

describe.concurrent("a message that its consumer has passed, and that came back to its queue", () => {
  for (const owner of ["its owner", "a new owner"] as const)
    outage(
      `is released by ${owner} where its delivery has ended`,
      (_, server) =>
        Effect.gen(function* () {
          const { ask, jsm, names } = yield* natsClients
          const power = powerCut(server, [names.deliveries(0)], { keepsConsumers: true })
          const { facts, hook } = yield* queueTwo
          yield* power.remember
          const first = yield* worker({ roles: ["deliver"] })
          yield* facts.count("delivered", 1)
          yield* facts.count("attempt-failed", 1)
          yield* eventually(queue, restsWithOne)
          if (owner === "a new owner") {
            const { state } = yield* ask("look", () => jsm.streams.info(names.history))
            yield* eventually(storedWatermark(0), (floor) => floor >= state.last_seq)
            yield* first.stop
          }
          // The state of its consumer reaches the disk, too.
          yield* Effect.promise(server.restart)
          yield* power.cut
          if (owner === "a new owner") {
            assert.deepStrictEqual(yield* queue, { stored: 2, held: 1 })
            yield* worker({ id: "second", roles: ["deliver"] })
          }
          yield* eventually(queue, restsWithOne)
          assert.lengthOf(hook.requests, 1)
          assert.deepInclude(yield* isClean, { delivered: 1, repeated: 0, pending: 1 })
        }),
      { ackWait: 300, partitions: 1 }
    )

  for (const before of ["was never attempted", "waited for its retry"] as const)
    outage(
      `is delivered where it ${before}`,
      (_, server) =>
        Effect.gen(function* () {
          const power = powerCut(server, [(yield* Broker).names.deliveries(0)], {
            keepsConsumers: true
          })
          const { facts, hook } = yield* queueTwo
          yield* power.remember
          if (before === "waited for its retry") {
            hook.answer(byAttempt(503, 200))
            const first = yield* worker({ id: "first", roles: ["deliver"] })
            yield* facts.count("attempt-failed", 2)
            yield* first.stop
          }
          yield* takenByStranger
          yield* eventually(queue, restsWithOne)
          yield* Effect.promise(server.restart)
          yield* power.cut
          assert.deepStrictEqual(yield* queue, { stored: 2, held: 1 })
          yield* worker({ roles: ["deliver"] })
          yield* facts.count("delivered", 1)
          yield* eventually(queue, restsWithOne)
          assert.deepStrictEqual(attempts(hook), before === "was never attempted" ? [1] : [1, 2])
          assert.deepInclude(yield* isClean, { delivered: 1, repeated: 0, pending: 1 })
        }),
      { ackWait: 300, partitions: 1 }
    )
})
