import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { makeIsAttemptRecorded } from "../../../src/delivery/retry/applied-steps.ts"
import type { PlacedDelivery } from "../../../src/domain/delivery.ts"
import { untried } from "../../../src/domain/delivery.ts"
import { Facts } from "../../../src/history/facts.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const count = 200

const about = (eventSeq: number) => ({
  ...{ tenant: "acme", endpoint: "hook", event: `${eventSeq}`, type: "paid" },
  ...{ eventSeq, eventAt: 1, round: "0" }
})

const heldOf = (eventSeq: number): PlacedDelivery => ({
  place: { stream: "elsewhere", seq: eventSeq, at: 1 },
  delivery: {
    ...{ ...about(eventSeq), began: 1, deadline: 2, generation: "g" },
    ...{ revision: 1, content: {}, progress: untried }
  },
  body: new Uint8Array()
})

/** Counts what is asked of the broker. */
const counted = (broker: Broker["Service"]) => {
  const asked = { times: 0 }
  const counting = new Proxy(broker, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name)
      if (typeof value !== "function") return value
      asked.times++
      return value
    }
  })
  return { asked, counting }
}

describe.concurrent("the fact of an attempt", () => {
  scenario("is found for each of many that ask after a crash, and read once for all", () =>
    Effect.gen(function* () {
      const { append } = yield* Facts
      const decidedAt = Date.now()
      const record = { v: 1, decidedAt, decision: { _tag: "Nak", at: 1 } } as const
      const tell = (eventSeq: number, attempt: number) =>
        append(
          { v: 1, kind: "attempt-failed", at: 2, ...about(eventSeq), attempt, worker: "w1" },
          `fact.${eventSeq}.${attempt}`
        )
      for (let seq = 1; seq <= count; seq++) yield* tell(seq, 3)
      // Its successor has made another one since.
      yield* tell(1, 4)
      const { asked, counting } = counted(yield* Broker)
      yield* Effect.gen(function* () {
        const isRecorded = yield* makeIsAttemptRecorded
        const ask = (eventSeq: number, attempts: number) =>
          isRecorded(heldOf(eventSeq), { ...record, progress: { attempts } })
        const all = Array.from({ length: count }, (_, index) => ask(index + 1, 3))
        assert.isTrue((yield* Effect.all(all, { concurrency: 16 })).every(Boolean))
        assert.isBelow(asked.times, count, "what has been read is not read for each of them")
        assert.isFalse(yield* ask(count, 4))
        yield* tell(count, 4)
        assert.isTrue(yield* ask(count, 4))
        assert.isFalse(yield* ask(count + 1, 3))
      }).pipe(Effect.provideService(Broker, counting))
    })
  )
})
