import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { AckHandle } from "../../src/delivery/execution/ack-handle.ts"
import { findMoved } from "../../src/delivery/retry/applied-steps.ts"
import { roundKey, untried } from "../../src/domain/delivery.ts"
import type { FactKind } from "../../src/domain/fact.ts"
import { factKinds } from "../../src/domain/fact.ts"
import { Facts } from "../../src/history/facts.ts"
import { findRounds } from "../../src/rounds/round-start.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const about = { tenant: "acme", endpoint: "hook", eventSeq: 1, eventAt: 1, round: "d4" }

/** Tells of the round, after its first attempt. */
const tell = (kind: FactKind) =>
  Effect.flatMap(Facts, ({ append }) =>
    append({ v: 1, kind, at: 2, ...about, attempt: 2, worker: "w1" }, `fact.${kind}`)
  )

/** Whether it is seen that the round was begun, and that it has gone on since its first attempt. */
const isSeen = Effect.gen(function* () {
  const record = { ...about, v: 1, decidedAt: Date.now() } as const
  const decision = { _tag: "Schedule", at: 1 } as const
  const held: AckHandle = {
    place: { stream: "elsewhere", seq: 1, at: 1 },
    delivery: {
      ...{ ...about, event: "a", type: "paid", began: 1, deadline: 2, generation: "g" },
      ...{ revision: 1, content: {}, progress: untried }
    },
    body: new Uint8Array(),
    ...{ deliveryCount: 1, ack: () => Effect.void, nak: () => undefined }
  }
  return {
    begun: (yield* findRounds(about, 0, new Set([roundKey(about)]), 0)).size === 1,
    moved: yield* findMoved(held, 0, { ...record, progress: { attempts: 1 }, decision })
  }
})

const traces: ReadonlyArray<FactKind> = [
  "delivered",
  "delivered-late",
  "attempt-failed",
  "dead-lettered"
]

describe.concurrent("a round of which no message is found", () => {
  for (const kind of traces)
    scenario(`was begun and has gone on by what the history tells: ${kind}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* isSeen, { begun: false, moved: false })
        yield* tell(kind)
        assert.deepStrictEqual(yield* isSeen, { begun: true, moved: true })
      })
    )

  scenario("was not begun by any other fact about it, such as that it is missing", () =>
    Effect.gen(function* () {
      const others = factKinds.filter((kind) => !traces.includes(kind))
      assert.include(others, "missing")
      for (const kind of others) yield* tell(kind)
      assert.deepStrictEqual(yield* isSeen, { begun: false, moved: false })
    })
  )
})
