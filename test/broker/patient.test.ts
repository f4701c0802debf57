import { assert, describe, it } from "@effect/vitest"
import { JetStreamApiError } from "@nats-io/jetstream"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import type { Clients } from "../../src/broker/clients.ts"
import { registerClients } from "../../src/broker/clients.ts"
import { maxUnansweredMs, patientBroker } from "../../src/broker/patient.ts"
import { useTimers } from "../../src/time/timers.ts"
import { makeLog } from "../kit/log.ts"
import { virtualTimers } from "../kit/moved-time.ts"

const failure = (code: number, err_code: number, description: string) =>
  new BrokerError({
    operation: "read installation",
    cause: new JetStreamApiError({ code, err_code, description })
  })
const noLeader = failure(503, 10008, "JetStream system temporarily unavailable")
const notFound = failure(404, 10059, "stream not found")

/** A broker that fails the first requests, and counts them. */
const failing = (times: number, error: BrokerError) => {
  const state = { asked: 0 }
  const answer = <A>(value: A) =>
    Effect.suspend(() => (state.asked++ < times ? Effect.fail(error) : Effect.succeed(value)))
  const broker = {
    entry: () => answer("an entry"),
    deleteMessage: () => answer(true),
    read: () => Stream.fromEffect(answer("a message"))
  } as unknown as Broker["Service"]
  registerClients(broker, {} as Clients)
  return { state, patient: Effect.provideService(patientBroker, Broker, broker) }
}

/** Lets time pass for the fiber, second by second, until it ends. */
const run = <A, E>(work: Effect.Effect<A, E>, seconds: number) =>
  Effect.gen(function* () {
    const { runs, timers } = virtualTimers()
    const before = useTimers(timers)
    const fiber = yield* Effect.forkChild(work, { startImmediately: true })
    for (let second = 0; second < seconds; second++) {
      runs(1_000)
      yield* TestClock.adjust("1 second")
    }
    const result = yield* Effect.exit(Fiber.join(fiber))
    before()
    return yield* result
  })

describe("a broker that a command reads from", () => {
  it.effect("is asked again while a cluster has no leader, and it is said once", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const { patient, state } = failing(12, noLeader)
      const broker = yield* patient
      assert.strictEqual(String(yield* run(broker.entry("bucket", "key"), 10)), "an entry")
      assert.strictEqual(state.asked, 13)
      assert.strictEqual(log.count("waiting for up to 20 s"), 1)
      assert.lengthOf(log.lines, 1)
    }).pipe(Effect.provide(log.layer))
  })

  it.effect("fails as before if that lasts", () =>
    Effect.gen(function* () {
      const { patient, state } = failing(1_000, noLeader)
      const broker = yield* patient
      const error = yield* Effect.flip(
        run(broker.entry("bucket", "key"), maxUnansweredMs / 1_000 + 2)
      )
      assert.strictEqual(error, noLeader)
      assert.isAtLeast(state.asked, 20)
    })
  )

  it.effect("is not asked again where it answered that something is missing", () =>
    Effect.gen(function* () {
      const { patient, state } = failing(1, notFound)
      const broker = yield* patient
      assert.strictEqual(yield* Effect.flip(broker.entry("bucket", "key")), notFound)
      assert.strictEqual(state.asked, 1)
    })
  )

  it.effect("is not asked a second time to write", () =>
    Effect.gen(function* () {
      const { patient, state } = failing(1, noLeader)
      const broker = yield* patient
      assert.strictEqual(yield* Effect.flip(broker.deleteMessage("delete", "S", 1)), noLeader)
      assert.strictEqual(state.asked, 1)
    })
  )

  it.effect("is read from the beginning only where nothing has arrived", () =>
    Effect.gen(function* () {
      const range = { stream: "S", subjects: [">"] }
      const { patient, state } = failing(3, noLeader)
      const broker = yield* patient
      const all = yield* run(Stream.runCollect(broker.read(range, 1)), 5)
      assert.deepStrictEqual(Array.from(all, String), ["a message"])
      assert.strictEqual(state.asked, 4)

      const broken = {
        read: () => Stream.concat(Stream.make("first"), Stream.fail(noLeader))
      } as unknown as Broker["Service"]
      registerClients(broken, {} as Clients)
      const reading = yield* Effect.provideService(patientBroker, Broker, broken)
      const seen: Array<string> = []
      const error = yield* Effect.flip(
        Stream.runForEach(reading.read(range, 1), (one) =>
          Effect.sync(() => seen.push(String(one)))
        )
      )
      assert.strictEqual(error, noLeader)
      assert.deepStrictEqual(seen, ["first"])
    })
  )
})
