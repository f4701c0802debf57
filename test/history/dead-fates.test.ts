import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { type Fact, type FactKind, factResult } from "../../src/domain/fact.ts"
import { countOpen, readFates } from "../../src/history/dead-fates.ts"
import { listDeadLetters } from "../../src/operations/dead-letters/dead-letter-queries.ts"
import { buriedAt, bury } from "../cli/commands/dead/dead-letters.ts"
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

const tellOfLetter = (kind: FactKind, dead: number, more: Partial<Fact> = {}) =>
  Effect.gen(function* () {
    const { names, publisher } = yield* natsClients
    const about = { tenant: "acme", endpoint: "crm", eventSeq: dead, eventAt: buriedAt }
    const fact: Fact = { v: 1, kind, at: buriedAt, ...about, round: `d${dead}`, dead, ...more }
    const subject = names.subjects.fact("acme", "crm", factResult(kind), kind)
    yield* publisher.publish(subject, JSON.stringify(fact), [])
  })

/** How many are open, as the status counts them and as the list shows them. */
const open = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look", names.dead)
  const counted = yield* countOpen(
    {
      stored: state.messages,
      firstId: state.first_seq,
      oldestAt: Date.parse(state.first_ts),
      removed: state.num_deleted ?? 0
    },
    yield* streamInfo("look", names.history)
  )
  const listed = yield* Stream.runCollect(listDeadLetters({ open: true }))
  return { counted, ids: listed.map(({ id }) => id) }
})

const remove = (id: number) =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    yield* ask("remove", () => jsm.streams.deleteMessage(names.dead, id))
  })

describe("open dead letters", () => {
  scenario("are those that were neither sent again, discarded nor delivered late", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* open, { counted: 0, ids: [] })
      for (let id = 1; id <= 6; id++)
        yield* bury({ endpoint: "crm", event: `acme-${id}`, eventSeq: id, reason: "permanent" })
      assert.deepStrictEqual(yield* open, { counted: 6, ids: [1, 2, 3, 4, 5, 6] })

      yield* tellOfLetter("redelivered", 2)
      yield* tellOfLetter("redelivered", 4)
      assert.deepStrictEqual(yield* open, { counted: 4, ids: [1, 3, 5, 6] })

      // One that was sent again is discarded, and one that was not.
      for (const id of [4, 5]) {
        yield* tellOfLetter("discarded", id)
        yield* remove(id)
      }
      assert.deepStrictEqual(yield* open, { counted: 3, ids: [1, 3, 6] })

      yield* tellOfLetter("delivered-late", 3, { round: "0" })
      // Its round ended with no dead letter.
      yield* tellOfLetter("delivered-late", 9, { round: "0" })
      assert.deepStrictEqual(yield* open, { counted: 2, ids: [1, 6] })

      // The oldest become too old to be kept, among them one that was sent again.
      for (const id of [1, 2]) yield* remove(id)
      assert.deepStrictEqual(yield* open, { counted: 1, ids: [6] })
    })
  )
})
