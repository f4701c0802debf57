import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Caller } from "../../../src/operations/caller.ts"
import { inPageTurn, PageTurns } from "../../../src/operations/endpoints/endpoint-page.ts"
import { TenantTurns } from "../../../src/operations/tenant-turns.ts"

const as = (tenant: string) =>
  Effect.provideService(Caller, {
    token: undefined,
    tenant,
    scopes: [],
    by: tenant,
    isValid: () => true
  })

const setUp = Effect.sync(() => {
  const order: Array<string> = []
  // One at a time: two tenants would need a third turn to be left.
  const turns = PageTurns.of(new TenantTurns(2, 3))
  const read = (tenant: string, work: Effect.Effect<void> = Effect.void) =>
    inPageTurn(
      Effect.andThen(
        Effect.sync(() => order.push(tenant)),
        work
      )
    ).pipe(
      as(tenant),
      Effect.provideService(PageTurns, turns),
      Effect.forkChild({ startImmediately: true })
    )
  return { order, read }
})

describe("pages of endpoints", () => {
  it.effect("are read for each tenant in turn, however many of one wait", () =>
    Effect.gen(function* () {
      const { order, read } = yield* setUp
      const end = yield* Deferred.make<void>()
      const first = yield* read("a", Deferred.await(end))
      const others = yield* Effect.all([read("a"), read("a"), read("a"), read("b")])
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.joinAll([first, ...others])
      assert.deepStrictEqual(order, ["a", "a", "b", "a", "a"])
    })
  )

  it.effect("are refused where too many of a tenant wait, and others' are not", () =>
    Effect.gen(function* () {
      const { order, read } = yield* setUp
      const end = yield* Deferred.make<void>()
      const first = yield* read("a", Deferred.await(end))
      const waiting = yield* Effect.all([read("a"), read("a"), read("a")])
      const refused = yield* Effect.flip(Fiber.join(yield* read("a")))
      assert.strictEqual(refused._tag, "Busy")
      const other = yield* read("b")
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.joinAll([first, ...waiting, other])
      assert.lengthOf(order, 5)
    })
  )

  it.effect("leave the line with who asked for them, and pass a turn on", () =>
    Effect.gen(function* () {
      const { order, read } = yield* setUp
      const first = yield* read("a", Effect.never)
      const gone = yield* read("b")
      const last = yield* read("c")
      yield* Fiber.interrupt(gone)
      yield* Fiber.interrupt(first)
      yield* Fiber.join(last)
      assert.deepStrictEqual(order, ["a", "c"])
    })
  )
})
