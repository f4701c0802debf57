import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact, FactKind } from "../../src/domain/fact.ts"
import { factResult } from "../../src/domain/fact.ts"
import { countOpen } from "../../src/history/dead-fates.ts"
import { listDeadLetters } from "../../src/operations/dead-letters/dead-letter-queries.ts"
import { buriedAt, bury } from "../cli/commands/dead/dead-letters.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const tell = (kind: FactKind, dead: number, more: Partial<Fact> = {}) =>
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

      yield* tell("redelivered", 2)
      yield* tell("redelivered", 4)
      assert.deepStrictEqual(yield* open, { counted: 4, ids: [1, 3, 5, 6] })

      // One that was sent again is discarded, and one that was not.
      for (const id of [4, 5]) {
        yield* tell("discarded", id)
        yield* remove(id)
      }
      assert.deepStrictEqual(yield* open, { counted: 3, ids: [1, 3, 6] })

      yield* tell("delivered-late", 3, { round: "0" })
      // Its round ended with no dead letter.
      yield* tell("delivered-late", 9, { round: "0" })
      assert.deepStrictEqual(yield* open, { counted: 2, ids: [1, 6] })

      // The oldest become too old to be kept, among them one that was sent again.
      for (const id of [1, 2]) yield* remove(id)
      assert.deepStrictEqual(yield* open, { counted: 1, ids: [6] })
    })
  )
})
