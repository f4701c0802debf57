import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import { factResult } from "../../src/domain/fact.ts"
import { readFates } from "../../src/history/dead-fates.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Stores facts about deliveries to one endpoint of acme, in this order. */
const tell = (facts: ReadonlyArray<Partial<Fact> & { readonly kind: FactKind }>, endpoint = "a") =>
  Effect.gen(function* () {
    const { names, publisher } = yield* natsClients
    yield* Effect.forEach(
      facts,
      (fact) =>
        publisher.publish(
          names.subjects.fact("acme", endpoint, factResult(fact.kind), fact.kind),
          JSON.stringify({ v: 1, at: 0, tenant: "acme", endpoint, ...fact } satisfies Fact),
          []
        ),
      // On one connection they are stored in the order they are sent in.
      { concurrency: 256, discard: true }
    )
  })

const redelivered = (dead: number) =>
  ({
    kind: "redelivered",
    at: 10,
    eventSeq: dead,
    eventAt: 0,
    round: `d${dead}`,
    dead,
    by: "ana"
  }) as const
const ended = (dead: number, kind: "delivered" | "dead-lettered", at: number) =>
  ({ kind, at, eventSeq: dead, eventAt: 0, round: `d${dead}` }) as const
/** Ends of other rounds, more than are read where nothing is open. */
const others = Array.from(
  { length: 6_000 },
  (_, index) =>
    ({ kind: "delivered", at: 1, eventSeq: 100 + index, eventAt: 0, round: "0" }) as const
)

describe("what became of dead letters that were sent again", () => {
  for (const endpoints of [1, 10])
    scenario(`is told of each of ${endpoints} endpoints, and of one that was claimed only`, () =>
      Effect.gen(function* () {
        for (let index = 1; index < endpoints; index++)
          yield* tell([redelivered(90 + index), ended(90 + index, "delivered", 11)], `x${index}`)
        yield* tell([
          redelivered(1),
          redelivered(2),
          // A text of a receiver's that looks like the round of another fact.
          {
            ...ended(2, "dead-lettered", 12),
            dead: 7,
            response: { headers: {}, body: '"round":"0"', bytes: 11 }
          },
          ended(1, "delivered", 11)
        ])
        // Nothing is open here, so that nobody reads that the next one has ended before it began.
        yield* tell([...others, ended(3, "delivered", 13), ...others])
        yield* tell([redelivered(3), ended(3, "delivered", 14), redelivered(4), ...others])
        yield* tell([redelivered(5), ended(5, "delivered", 15), redelivered(6)])
        const fates = yield* readFates({ endpoint: { tenant: "acme", id: "a" } })
        const seen = yield* readFates({})
        for (const [dead, outcome, endedAt, again] of [
          [1, "delivered", 11, undefined],
          [2, "dead-lettered", 12, 7],
          [3, "delivered", 14, undefined],
          [4, "waiting", undefined, undefined],
          [5, "delivered", 15, undefined],
          [6, "waiting", undefined, undefined]
        ] as const)
          for (const all of [fates, seen]) {
            const fate = all.get(dead)
            assert.deepInclude(fate, { at: 10, by: "ana", round: `d${dead}`, outcome })
            assert.strictEqual(fate?.endedAt, endedAt)
            assert.strictEqual(fate?.dead, again)
          }
        assert.strictEqual(seen.size, 6 + endpoints - 1)
        const some = yield* readFates({}, { ids: new Set([2, 4]) })
        assert.deepStrictEqual([...some.keys()], [2, 4])
      })
    )
})
