import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { audit, examine } from "../../src/history/audit/audit.ts"
import { openBooks } from "../../src/history/audit/books.ts"
import { judge } from "../../src/history/audit/judgement.ts"
import { readReach } from "../../src/history/audit/reach.ts"
import { publishMany } from "../engine.ts"
import { onServer } from "../scenario.ts"
import { delivered } from "./delivered.ts"

const { scenario } = onServer()

const minutes = 60_000

/** Runs as it would so much later, ms. */
const later = <A, E, R>(ms: number, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const real = yield* Clock.Clock
    const now = () => real.currentTimeMillisUnsafe() + ms
    const clock: Clock.Clock = Object.create(real, {
      currentTimeMillis: { value: Effect.sync(now) },
      currentTimeMillisUnsafe: { value: now }
    })
    return yield* Effect.provideService(effect, Clock.Clock, clock)
  })

const found = Effect.map(audit({}), ({ judgement }) => ({
  unreached: judgement.events.unreached,
  verdict: judgement.verdict,
  problems: judgement.problems.list.map(
    ({ eventSeq, kind, says }) => `${kind} ${eventSeq}: ${says}`
  )
}))

describe("an audit of what the router has not come to", () => {
  scenario("lets it wait for a quarter of an hour, and then calls each event overdue", () =>
    Effect.gen(function* () {
      yield* delivered(3)
      yield* publishMany(2, "invoice.late")
      assert.deepStrictEqual(yield* later(14 * minutes, found), {
        verdict: "clean",
        unreached: 2,
        problems: []
      })
      const says = "it has been stored for long, and the router has not come to it"
      assert.deepStrictEqual(yield* later(16 * minutes, found), {
        verdict: "problems",
        unreached: 2,
        problems: [`overdue 4: ${says}`, `overdue 5: ${says}`]
      })
    })
  )
})

describe("an audit of a history that expires", () => {
  scenario("says nothing of events whose plans expired before they could be read", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* Broker
      yield* delivered(300)
      const reach = yield* readReach({})
      const books = openBooks(reach)
      yield* ask("expire", () => jsm.streams.purge(names.history, { seq: 450 }))
      const judgement = yield* judge(books, yield* examine(books, reach))
      assert.deepStrictEqual(judgement.problems.list, [])
      assert.strictEqual(judgement.verdict, "clean")
    })
  )

  scenario("does not vouch for what was asked for and is not told any more, nor call it lost", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* Broker
      const begin = Date.now()
      yield* delivered(3)
      yield* ask("expire", () => jsm.streams.purge(names.history, { seq: 4 }))
      const { judgement } = yield* audit({ since: begin })
      assert.deepStrictEqual(judgement.problems.list, [])
      assert.strictEqual(judgement.verdict, "unvouched")
    })
  )
})
