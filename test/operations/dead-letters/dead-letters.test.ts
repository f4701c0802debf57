import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import {
  bodyOf,
  listDeadLetters,
  showDeadLetter
} from "../../../src/operations/dead-letters/dead-letter-queries.ts"
import { planDiscard } from "../../../src/operations/dead-letters/discard-dead-letters.ts"
import { planRedelivery } from "../../../src/operations/dead-letters/redeliver-dead-letters.ts"
import { bury } from "../../cli/commands/dead/dead-letters.ts"
import { endpoint } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

const burySome = Effect.gen(function* () {
  yield* endpoint()
  for (const [index, reason] of ["permanent", "attempts", "permanent"].entries())
    yield* bury({ endpoint: "hook", event: `acme-${index}`, eventSeq: index + 1, reason })
  yield* bury({ endpoint: "gone", event: "acme-gone", reason: "permanent" })
})

const by = "ana"

describe("what an operator can ask about dead letters", () => {
  scenario("is listed, shown with its bytes, and not found where there is none", () =>
    Effect.gen(function* () {
      const bytes = Uint8Array.of(0, 255, 254)
      yield* bury({ endpoint: "crm", event: "acme-1", reason: "deadline", body: bytes })
      yield* bury({ endpoint: "crm", event: "acme-2", reason: "permanent", body: "grüße" })
      const ids = Effect.map(Stream.runCollect(listDeadLetters({ reason: "deadline" })), (all) =>
        all.map(({ id }) => id)
      )
      assert.deepStrictEqual(yield* ids, [1])
      const binary = yield* showDeadLetter(1)
      assert.deepStrictEqual([...bodyOf(binary)], [...bytes])
      assert.notProperty(binary, "body")
      assert.deepInclude(yield* showDeadLetter(2), { body: "grüße", bytes: 7, reason: "permanent" })
      const missing = yield* Effect.flip(showDeadLetter(9))
      assert.deepInclude(missing, { _tag: "DeadLettersNotFound", ids: [9] })
    })
  )

  scenario("is sent again once, and what its endpoint would not take is left alone", () =>
    Effect.gen(function* () {
      yield* burySome
      const skipped = [{ endpoint: "acme/gone", why: "endpoint-removed" as const, count: 1 }]
      const { plan, run } = yield* planRedelivery({ all: true }, { by })
      const rest = {
        ...{ gone: 0, before: 0, deliveredLate: 0, superseded: 0 },
        ...{ skipped, skippedElsewhere: 0 }
      }
      const reasons = { permanent: 2, attempts: 1 }
      assert.deepStrictEqual(plan, { selected: 4, redeliver: 3, reasons, ...rest })
      let begun = 0
      const done = yield* run((counts) => {
        begun = counts.begun
      })
      assert.deepStrictEqual(done, { selected: 4, redelivered: 3, ...rest })
      assert.strictEqual(begun, 3)

      const again = yield* planRedelivery({ endpoint: { tenant: "acme", id: "hook" } }, { by })
      assert.deepInclude(again.plan, { redeliver: 0, before: 3 })
      const waiting = yield* planDiscard({ endpoint: { tenant: "acme", id: "hook" } })
      assert.deepInclude(waiting.plan, { selected: 3, discard: 0, waiting: 3 })
    })
  )

  scenario("is discarded, and an empty selection is refused", () =>
    Effect.gen(function* () {
      yield* burySome
      const { plan, run } = yield* planDiscard({ reason: "permanent" })
      assert.deepInclude(plan, { selected: 3, discard: 3, reasons: { permanent: 3 } })
      const steps: Array<number> = []
      const done = yield* run(by, (count) => steps.push(count))
      assert.deepStrictEqual(done, { selected: 3, discarded: 3, waiting: 0, gone: 0 })
      assert.deepStrictEqual(steps, [0, 1, 2, 3])
      const left = yield* Stream.runCollect(listDeadLetters({}))
      assert.deepStrictEqual(
        left.map(({ reason }) => reason),
        ["attempts"]
      )
      const refused = yield* Effect.flip(planDiscard({}))
      assert.propertyVal(refused, "_tag", "Invalid")
    })
  )
})
