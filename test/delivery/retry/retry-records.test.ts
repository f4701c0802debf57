import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { isConflict } from "../../../src/broker/values.ts"
import {
  eraseRecord,
  readRecord,
  readRevised,
  readRevision,
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
