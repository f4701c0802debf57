import { assert, describe, it } from "@effect/vitest"
import { headers } from "@nats-io/nats-core"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { readEntry, writeValue } from "../../../src/broker/values.ts"
import {
  backlogOwnersKey,
  isLate,
  noteOwner,
  readOwners,
  replacedBy
} from "../../../src/delivery/recovery/backlog-owners.ts"
import { labelHeaders } from "../../../src/domain/backlog-message.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { eventually, worker } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

describe("a message that an owner stored", () => {
  const owners = [
    { owner: 100, after: 5 },
    { owner: 200, after: 9 },
    { owner: 300, after: 9 }
  ]
  for (const [seq, writer, expected, why] of [
    [5, 50, false, "of a time of which no owner is remembered"],
    [6, 100, false, "of its own time"],
    [9, 100, false, "the last of its own time"],
    [10, 100, true, "after two others had begun"],
    [10, 200, true, "after the next one had begun"],
    [10, 300, false, "of its own time"],
    [6, 50, true, "of a forgotten owner"],
    [9, 200, false, "below where it began: the stream was truncated"],
    [6, 300, false, "below where it and another one began: the stream was truncated"],
    [9, 150, false, "of an owner whose note was lost, below where it began"]
  ] as const)
    it(`${seq} of ${writer} is ${expected ? "" : "not "}late: ${why}`, () => {
      assert.strictEqual(isLate(owners, seq, writer), expected)
    })
})

describe("a message that replaces others", () => {
  const owners = [
    { owner: 100, after: 5 },
    { owner: 200, after: 9 }
  ]
  const message = (seq: number, owner: number | undefined) => {
    const header = headers()
    for (const [name, value] of labelHeaders({ stored: 3, owner, replaces: [6, 7] }))
      header.set(name, value)
    return { header, seq }
  }

  it("has replaced them, whoever has stored it", () => {
    assert.deepStrictEqual(replacedBy(message(9, 100), owners), [6, 7])
    assert.deepStrictEqual(replacedBy(message(10, 200), owners), [6, 7])
    assert.deepStrictEqual(replacedBy(message(10, undefined), owners), [6, 7])
  })

  it("has replaced none where it was stored late: they are delivered", () => {
    assert.deepStrictEqual(replacedBy(message(10, 100), owners), [])
  })

  it("has replaced none without a label", () => {
    assert.deepStrictEqual(replacedBy({ header: headers(), seq: 10 }, owners), [])
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

  scenario("begin no later than the next one, where the stream has lost what they stored", () =>
    Effect.gen(function* () {
      yield* noteOwner(0, { owner: 1, after: 10 })
      yield* noteOwner(0, { owner: 2, after: 20 })
      assert.deepStrictEqual(yield* noteOwner(0, { owner: 3, after: 15 }), [
        { owner: 1, after: 10 },
        { owner: 2, after: 15 },
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

  scenario("begin where they have read the backlogs to, whatever was stored since", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      const { seq } = yield* publisher.publish(names.subjects.backlog(0, "acme", "hook"), "{}", [])
      const broker = yield* alteredBroker(({ streamInfo }) => ({
        streamInfo: (operation, stream, options) =>
          Effect.map(streamInfo(operation, stream, options), (info) =>
            stream === names.backlog(0) && operation === `look where ${stream} ends`
              ? { ...info, state: { ...info.state, last_seq: seq - 1 } }
              : info
          )
      }))
      yield* Effect.provideService(worker(), Broker, broker)
      const owners = yield* eventually(readOwners(0), ({ length }) => length > 0)
      assert.deepStrictEqual(
        owners.map(({ after }) => after),
        [seq - 1]
      )
    })
  )
})
