import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { eraseRecord } from "../../src/delivery/retry/retry-records.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { crashBroker } from "../kit/broker-crash.ts"
import { consistentRounds, isClean, noRecords, quiet } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  queued,
  quickRetry,
  waitingMessages,
  worker,
  workersApart
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer, refusingRepeats } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

const { scenario } = onServer()

/** Another worker takes over, brings everything to its end, and stops. */
const takeOver = (maxWaiting?: number) =>
  Effect.gen(function* () {
    const second = yield* worker({ id: "second", maxWaiting })
    yield* quiet
    yield* second.stop
    yield* noRecords
  })

describe("when the broker dies too", () => {
  scenario(
    "an event that was routed, and delivered since, is not delivered again",
    (place, server) =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver()
        yield* endpoint({ id: "a", url })
        yield* endpoint({ id: "b", url })
        const facts = yield* history
        const { seq } = yield* publish("invoice.paid")
        const deliverer = yield* worker({ id: "deliverer", roles: ["deliver"] })
        yield* crashAt(place, "event-routed", 1, { roles: ["router"] })
        yield* facts.count("delivered", 2)
        yield* eventually(waitingMessages, (count) => count === 0)
        yield* deliverer.stop
        assert.strictEqual(seq, 1)
        yield* crashBroker(server)
        yield* takeOver()
        assert.lengthOf(yield* consistentRounds, 2)
        assert.lengthOf(requests, 2)
      })
  )

  for (const left of ["", ", though its worker was done with it"])
    scenario(
      `a delivery that became a schedule, which has fired since, is not moved again${left}`,
      (place, server) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const partition = partitionOf("acme", "hook", 2)
          const { requests, url } = yield* receiver({ answer: byAttempt(503, 200) })
          yield* endpoint({ url, retry: quickRetry() })
          yield* publish("invoice.paid")
          yield* crashAt(place, "moved", 1, { maxWaiting: 0 })
          const queue = yield* eventually(
            queued(partition, names.subjects.deliveriesOf(partition)),
            (messages) => messages.length === 2
          )
          // As if it had acknowledged the message before that, and the broker had forgotten it.
          if (left !== "")
            yield* eraseRecord({
              ...{ stream: names.deliveries(partition), seq: 1 },
              at: nth(queue, 0).time.getTime()
            })
          yield* crashBroker(server)
          yield* takeOver(0)
          yield* consistentRounds
          assert.lengthOf(requests, 2)
        })
    )

  for (const way of ["out of its queue", "from its event"] as const)
    scenario(
      `a delivery ${way} whose acknowledgement it did not hear is acknowledged again, not repeated`,
      (_, server) =>
        Effect.gen(function* () {
          const { requests, url } = yield* receiver()
          yield* endpoint({ url })
          let arrivals = 0
          const dies = Effect.provideService(Failpoint, (step: FailpointName) => {
            if (step === "outcome-stored" && arrivals++ === 0) process.kill(server.pid, "SIGKILL")
          })
          yield* dies(way === "from its event" ? worker() : workersApart())
          yield* Effect.forkScoped(Effect.ignore(publish("invoice.paid")))
          yield* eventually(
            Effect.sync(() => arrivals),
            (count) => count > 0
          )
          yield* crashBroker(server)
          yield* quiet
          yield* consistentRounds
          assert.lengthOf(requests, 1)
        })
    )

  for (const way of ["out of its queue", "from its event"] as const)
    scenario(
      `a delivery ${way} that was answered meanwhile ends once, though its receiver refuses a repeat`,
      (_, server) =>
        Effect.gen(function* () {
          const { requests, url } = yield* receiver({ answer: refusingRepeats({}) })
          yield* endpoint({ url })
          let arrivals = 0
          const dies = Effect.provideService(Failpoint, (step: FailpointName) => {
            if (step === "answered" && arrivals++ === 0) process.kill(server.pid, "SIGKILL")
          })
          yield* dies(way === "from its event" ? worker() : workersApart())
          yield* Effect.forkScoped(Effect.ignore(publish("invoice.paid")))
          yield* eventually(
            Effect.sync(() => arrivals),
            (count) => count > 0
          )
          yield* crashBroker(server)
          yield* quiet
          const [account] = yield* consistentRounds
          assert.strictEqual(account?.ends[0]?.kind, "delivered")
          yield* isClean
          assert.lengthOf(requests, 1)
        })
    )
})
