import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { type Answer, startConsole } from "../kit/console.ts"
import { quantile } from "../kit/latency.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** 4,000 fields that there are not: some ms of the console's thread. */
const unknownFields = Object.fromEntries(
  Array.from({ length: 4_000 }, (_, n) => [`unknown_field_${n}`, n])
)

const timed = <A>(asked: Effect.Effect<A>) =>
  Effect.map(Effect.timed(asked), ([took, answer]) => ({ answer, ms: Duration.toMillis(took) }))

/** Waits of who asks 48 times at the same time, and of one that asks meanwhile now and then: medians. */
const waits = Effect.fnUntraced(function* (
  greedy: Effect.Effect<unknown>,
  modest: Effect.Effect<Answer>
) {
  const own: Array<number> = []
  const attack = yield* Effect.forkChild(
    Effect.forEach(
      Array.from({ length: 48 }),
      () =>
        timed(greedy).pipe(
          Effect.map(({ ms }) => own.push(ms)),
          Effect.forever
        ),
      { concurrency: "unbounded" }
    )
  )
  const others: Array<number> = []
  while (others.length < 20 || own.length < 96) {
    const { answer, ms } = yield* timed(modest)
    assert.strictEqual(answer.status, 200, answer.text)
    others.push(ms)
  }
  yield* Fiber.interrupt(attack)
  const medianOf = (all: Array<number>) =>
    quantile(
      all.toSorted((a, b) => a - b),
      0.5
    ) ?? 0
  return { own: medianOf(own), others: medianOf(others) }
})

describe("who wants all of the console's time", () => {
  scenario("waits for its turn, and another tenant's requests do not wait for it", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
      const { others, own } = yield* waits(
        ask("/v1/tenants/acme/endpoints/some", {
          method: "PUT",
          token: acme,
          body: unknownFields
        }),
        ask("/v1/tenants/globex/endpoints", { token: globex })
      )
      assert.isAtMost(others, own / 4)
    })
  )

  for (const path of ["/docs", "/openapi.json"])
    scenario(`waits for its turn at ${path} without a token, too`, () =>
      Effect.gen(function* () {
        const { ask, token: make } = yield* startConsole()
        const token = yield* make()
        const { others, own } = yield* waits(
          ask(path),
          ask("/v1/tenants/acme/endpoints", { token })
        )
        assert.isAtMost(others, own / 4)
      })
    )
})
