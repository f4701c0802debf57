import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { Raised } from "../../src/history/audit/watch.ts"
import { watch } from "../../src/history/audit/watch.ts"
import { makeConditions } from "../conditions.ts"
import { endpoint, history, publishMany, worker } from "../engine.ts"
import { receiver } from "../receiver.ts"
import { onServer } from "../scenario.ts"

const { scenario } = onServer()

/** Goes on auditing, a look after the other. */
const watching = Effect.gen(function* () {
  const raised: Array<Raised> = []
  const failures: Array<string> = []
  const verdicts: Array<string> = []
  const conditions = makeConditions()
  yield* watch({}, 20, {
    raised: (each) => Effect.sync(() => void raised.push(each)),
    failed: (why) => Effect.sync(() => void failures.push(why)),
    looked: ({ verdict }) =>
      Effect.sync(() => {
        verdicts.push(verdict)
        conditions.changed()
      })
  }).pipe(Effect.forkScoped)
  return {
    raised,
    failures,
    verdicts,
    /** Waits for looks that begin after this was called. */
    looks: (count: number) =>
      Effect.suspend(() => {
        const wanted = verdicts.length + count + 1
        return conditions.until(() => verdicts.length >= wanted)
      })
  }
})

describe("a watch", () => {
  scenario("raises nothing while events keep coming and all goes well", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const told = yield* history
      yield* endpoint({ url: hook.url })
      yield* worker()
      const watch = yield* watching
      yield* watch.looks(1)
      for (let wave = 1; wave <= 5; wave++) yield* publishMany(100, `wave-${wave}`)
      yield* told.count("delivered", 500)
      yield* watch.looks(2)
      assert.deepStrictEqual(watch.raised, [])
      assert.strictEqual(watch.verdicts.at(-1), "clean")
    })
  )
})
