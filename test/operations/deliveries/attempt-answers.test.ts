import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import type { Fact } from "../../../src/domain/fact.ts"
import { Facts } from "../../../src/history/facts.ts"
import { withAnswers } from "../../../src/operations/deliveries/attempt-answers.ts"
import type { AttemptRow } from "../../../src/projection/delivery-log.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const at = 1_700_000_000_000

/** Stores the fact of an attempt. Returns its row in the log. */
const attempted = Effect.fnUntraced(function* (eventSeq: number, endpoint = "hook") {
  const facts = yield* Facts
  const about = { tenant: "acme", endpoint, eventSeq, eventAt: at, at }
  const response = { headers: {}, body: `answer ${eventSeq}`, bytes: 8 }
  const fact: Fact = { v: 1, kind: "delivered", ...about, attempt: 1, status: 200, response }
  const { seq } = yield* facts.append(fact, `${endpoint}.${eventSeq}`)
  return {
    ...about,
    ...{
      delivery: `evt_${eventSeq}.${endpoint}`,
      event: `evt_${eventSeq}`,
      round: "0",
      type: null
    },
    ...{ number: 1, outcome: "success", isProbe: false, status: 200, error: null },
    ...{ durationMs: null, nextAttemptAt: null, worker: null, seq }
  } satisfies AttemptRow
})

/** Adds the answers. Returns them, and how many facts were read one by one. */
const answersOf = Effect.fnUntraced(function* (
  rows: ReadonlyArray<AttemptRow>,
  alter: (broker: Broker["Service"]) => Partial<Broker["Service"]> = () => ({})
) {
  let single = 0
  const counted = yield* alteredBroker((broker) => ({
    readMessage: (...what) => {
      single++
      return broker.readMessage(...what)
    },
    ...alter(broker)
  }))
  const views = yield* Effect.provideService(withAnswers(rows), Broker, counted)
  return { bodies: views.map(({ response }) => response?.body), single }
})

const bodies = (rows: ReadonlyArray<AttemptRow>) => rows.map(({ eventSeq }) => `answer ${eventSeq}`)

describe.concurrent("the answers of a page of attempts", () => {
  scenario("are read by one request where their facts lie close together", () =>
    Effect.gen(function* () {
      const rows = yield* Effect.forEach([1, 2, 3, 4], (n) => attempted(n))
      yield* Effect.forEach([5, 6], (n) => attempted(n, "other"))
      const page = rows.toReversed()
      assert.deepStrictEqual(yield* answersOf(page), { bodies: bodies(page), single: 0 })
    })
  )

  scenario("are read one by one where they lie far apart, or a replica lacks them", () =>
    Effect.gen(function* () {
      const first = yield* attempted(1)
      for (let n = 2; n < 20; n++) yield* attempted(n)
      const page = [yield* attempted(20), first]
      assert.deepStrictEqual(yield* answersOf(page), { bodies: bodies(page), single: 1 })
      const lagging = yield* answersOf(page, () => ({ batch: () => Effect.succeed([]) }))
      assert.deepStrictEqual(lagging, { bodies: bodies(page), single: 2 })
    })
  )

  scenario("are none of another attempt that has the sequence now", () =>
    Effect.gen(function* () {
      const rows = yield* Effect.forEach([1, 2], (n) => attempted(n))
      const former = rows.map((row) => ({ ...row, eventAt: at - 1 }))
      const gone = { ...rows[0], seq: 1_000 } as AttemptRow
      const { bodies: found } = yield* answersOf([gone, ...former])
      assert.deepStrictEqual(found, [undefined, undefined, undefined])
    })
  )
})
