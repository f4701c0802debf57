import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { roundKey } from "../../src/domain/delivery.ts"
import type { ClaimKind } from "../../src/history/claims.ts"
import { openClaims } from "../../src/history/claims.ts"
import { allFacts } from "../kit/consistency.ts"
import { erasableHistory } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const target = { tenant: "acme", endpoint: "hook" }
const open = (kind: ClaimKind = "redelivered", round = "d1") =>
  openClaims({
    ...{ kind, target, from: { fromTime: 0 } },
    rounds: new Set(upTo(30).map((n) => roundKey({ ...roundOf(n), round })))
  })
const factOf = (eventSeq: number, by: string) => ({ ...target, ...roundOf(eventSeq), by })
const roundOf = (eventSeq: number) => ({ eventSeq, eventAt: 5, round: "d1" })
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

describe.concurrent("a claim", () => {
  scenario("is one claimer's, however many claim at the same time", (place) =>
    Effect.gen(function* () {
      const mine = yield* open()
      const theirs = yield* Effect.provideService(open(), Broker, yield* place.connection)
      const claimAll = (claims: typeof mine, by: string) =>
        Effect.forEach(upTo(30), (n) => claims.claim(factOf(n, by), roundOf(n)), {
          concurrency: 8
        })
      const [first, second] = yield* Effect.all([claimAll(mine, "ana"), claimAll(theirs, "bo")], {
        concurrency: 2
      })
      for (const [index, one] of first.entries())
        assert.deepStrictEqual([one, second[index]].sort(), ["mine", "taken"])
      const told = (yield* allFacts).map(({ eventSeq = 0 }) => eventSeq)
      assert.deepStrictEqual(
        told.toSorted((a, b) => a - b),
        upTo(30)
      )
    })
  )

  scenario("holds for one who opens them later, and for one who opened them long before", () =>
    Effect.gen(function* () {
      const before = yield* open()
      assert.strictEqual(yield* (yield* open()).claim(factOf(1, "ana"), roundOf(1)), "mine")
      const later = yield* open()
      const claim = later.known.get("1@5.d1")
      assert.strictEqual(claim && (yield* later.read(claim))?.by, "ana")
      assert.strictEqual(yield* later.claim(factOf(1, "bo"), roundOf(1)), "taken")
      assert.strictEqual(yield* before.claim(factOf(1, "cy"), roundOf(1)), "taken")
      assert.lengthOf(yield* allFacts, 1)
    })
  )

  scenario("can be made when the last one has become too old to be kept", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* erasableHistory
      yield* (yield* open()).claim(factOf(1, "ana"), roundOf(1))
      const claims = yield* open()
      yield* ask("purge", () => jsm.streams.purge(names.history))
      assert.strictEqual(yield* claims.claim(factOf(2, "ana"), roundOf(2)), "mine")
      assert.strictEqual(yield* claims.claim(factOf(3, "ana"), roundOf(3)), "mine")
    })
  )

  scenario("of one kind or round says nothing of another", () =>
    Effect.gen(function* () {
      const claims = yield* open()
      yield* claims.claim(factOf(1, "ana"), roundOf(1))
      const other = { ...roundOf(1), round: "d9" }
      const others = yield* open("redelivered", "d9")
      assert.strictEqual(yield* others.claim({ ...target, ...other }, other), "mine")
      const discarded = yield* open("discarded")
      assert.strictEqual(yield* discarded.claim(factOf(1, "ana"), roundOf(1)), "mine")
    })
  )
})
