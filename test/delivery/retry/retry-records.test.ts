import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { isConflict } from "../../../src/broker/values.ts"
import {
  eraseRecord,
  readEnded,
  readRecord,
  readRevised,
  readRevision,
  writeEnded,
  writeRecord
} from "../../../src/delivery/retry/retry-records.ts"
import type { Place } from "../../../src/domain/fact.ts"
import { onServer } from "../../kit/scenario.ts"
import { recordOf } from "../made-deliveries.ts"

const { scenario } = onServer()

const placeOf = (seq: number): Place => ({ stream: "PETREL_DELIVERIES_0", seq, at: 1_000 })
const deadline = Date.now() + 60_000
const failed = recordOf({ _tag: "Nak", at: deadline }, { decidedAt: Date.now() })
const dead = recordOf({ _tag: "Dead", reason: "permanent" }, { decidedAt: Date.now() })

describe.concurrent("the record of a decision", () => {
  scenario("takes the place of the one that its owner knows, and of no other", () =>
    Effect.gen(function* () {
      const place = placeOf(1)
      const first = yield* writeRecord(place, failed, deadline)
      assert.deepStrictEqual(yield* readRevised(place), { record: failed, revision: first })
      // A former owner knows of none.
      const late = yield* Effect.flip(writeRecord(place, dead, deadline))
      assert.isTrue(isConflict(late))
      assert.deepStrictEqual(yield* readRecord(place), failed)
      const second = yield* writeRecord(place, dead, deadline, first)
      assert.strictEqual(yield* readRevision(place), second)
      assert.isTrue(isConflict(yield* Effect.flip(writeRecord(place, failed, deadline, first))))
      assert.deepStrictEqual(yield* readRecord(place), dead)
    })
  )

  scenario("does not come back once it was erased", () =>
    Effect.gen(function* () {
      const place = placeOf(2)
      const first = yield* writeRecord(place, failed, deadline)
      yield* eraseRecord(place)
      assert.isTrue(isConflict(yield* Effect.flip(writeRecord(place, dead, deadline, first))))
      assert.isUndefined(yield* readRecord(place))
      yield* writeRecord(place, dead, deadline, yield* readRevision(place))
      assert.deepStrictEqual(yield* readRecord(place), dead)
    })
  )
})

describe.concurrent("which entries of a message have ended", () => {
  scenario("is what all owners have stored, also those that stood still", () =>
    Effect.gen(function* () {
      const place = placeOf(3)
      const former = yield* writeEnded(place, [1], deadline)
      assert.deepStrictEqual(yield* readEnded(place), former)
      const next = yield* writeEnded(place, [1, 2, 4], deadline, former)
      assert.deepStrictEqual((yield* readEnded(place)).ended, [1, 2, 4])
      // The former one stored what follows before it stood still.
      yield* writeEnded(place, [1, 3], deadline, former)
      assert.deepStrictEqual((yield* readEnded(place)).ended, [1, 2, 4, 3])
      const all = yield* writeEnded(place, [1, 2, 4, 5], deadline, next)
      assert.deepStrictEqual([...all.ended].sort(), [1, 2, 3, 4, 5])
      assert.deepStrictEqual(yield* readEnded(place), all)
    })
  )
})
