import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { startConsole } from "../kit/console.ts"
import { quantile } from "../kit/latency.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** 4,000 fields that there are not: some ms of the console's thread. */
const unknownFields = Object.fromEntries(
  Array.from({ length: 4_000 }, (_, n) => [`unknown_field_${n}`, n])
)

const timed = <A>(asked: Effect.Effect<A>) =>
  Effect.map(Effect.timed(asked), ([took, answer]) => ({ answer, ms: Duration.toMillis(took) }))

describe("a tenant that wants all of the console's time", () => {
  scenario("waits for its turn, and another one's requests do not wait for it", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
      const waits: Array<number> = []
      const attack = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 48 }),
          () =>
            timed(
              ask("/v1/tenants/acme/endpoints/some", {
                method: "PUT",
                token: acme,
                body: unknownFields
              })
            ).pipe(
              Effect.map(({ ms }) => waits.push(ms)),
              Effect.forever
            ),
          { concurrency: "unbounded" }
        )
      )
      const others: Array<number> = []
      while (others.length < 20 || waits.length < 96) {
        const { answer, ms } = yield* timed(ask("/v1/tenants/globex/endpoints", { token: globex }))
        assert.strictEqual(answer.status, 200, answer.text)
        others.push(ms)
      }
      yield* Fiber.interrupt(attack)
      const [own, other] = [waits, others].map((all) =>
        quantile(
          all.toSorted((a, b) => a - b),
          0.5
        )
      )
      assert.isAtMost(other ?? 0, (own ?? 0) / 4)
    })
  )
})
