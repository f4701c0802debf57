import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { readEntry, writeValue } from "../../../src/broker/values.ts"
import {
  backlogOwnersKey,
  noteOwner,
  ownerAt
} from "../../../src/delivery/backlog/backlog-owners.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

describe("the owner at the time of a message", () => {
  const owners = [
    { owner: 100, after: 5 },
    { owner: 200, after: 9 },
    { owner: 300, after: 9 }
  ]
  for (const [seq, owner] of [
    [5, undefined],
    [6, 100],
    [9, 100],
    [10, 300]
  ] as const)
    it(`of message ${seq} is ${owner ?? "not known"}`, () => {
      assert.strictEqual(ownerAt(owners, seq), owner)
    })
})

describe("the owners of a partition", () => {
  scenario("are remembered, the last 16 of them", () =>
    Effect.gen(function* () {
      for (let owner = 1; owner <= 17; owner++) yield* noteOwner(0, { owner, after: owner * 10 })
      const owners = yield* noteOwner(0, { owner: 18, after: 180 })
      assert.strictEqual(owners.length, 16)
      assert.deepStrictEqual(owners.at(0), { owner: 3, after: 30 })
      assert.deepStrictEqual(owners.at(-1), { owner: 18, after: 180 })
      assert.deepStrictEqual(yield* noteOwner(1, { owner: 2, after: 7 }), [{ owner: 2, after: 7 }])
    })
  )

  scenario("are forgotten where the stream has lost what they stored", () =>
    Effect.gen(function* () {
      yield* noteOwner(0, { owner: 1, after: 10 })
      yield* noteOwner(0, { owner: 2, after: 20 })
      assert.deepStrictEqual(yield* noteOwner(0, { owner: 3, after: 15 }), [
        { owner: 1, after: 10 },
        { owner: 3, after: 15 }
      ])
    })
  )

  scenario("stay if a former one notes itself late", () =>
    Effect.gen(function* () {
      const { workers } = (yield* Broker).names.buckets
      const key = backlogOwnersKey(0)
      yield* noteOwner(0, { owner: 1, after: 10 })
      const { revision } = yield* readEntry(workers, key)
      const owners = yield* noteOwner(0, { owner: 2, after: 20 })
      yield* Effect.ignore(writeValue(workers, key, "[]", { expected: revision }))
      assert.deepStrictEqual(JSON.parse((yield* readEntry(workers, key)).text ?? ""), owners)
    })
  )
})
