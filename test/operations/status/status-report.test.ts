import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { PartitionSurvey } from "../../../src/delivery/introspection/survey.ts"
import { conditionsOf } from "../../../src/operations/status/status-conditions.ts"
import { Status, statusOf } from "../../../src/operations/status/status-report.ts"
import { nth } from "../../kit/engine.ts"
import { busy, partition } from "./surveys.ts"

const isStatus = Schema.is(Status)

describe("the state of an installation", () => {
  it("is as its schema says", () => {
    assert.isTrue(isStatus(statusOf(busy)))
  })

  it("has a problem where messages are unreadable, as far as any owner says", () => {
    const [first = partition(0), ...others] = busy.partitions
    const { answer } = first
    assert(answer !== undefined)
    const silent = { ...first, answer: undefined }
    const found = (unreadable: number) => [
      ...others,
      { ...first, answer: { ...answer, unreadable } }
    ]
    const problems = (partitions: ReadonlyArray<PartitionSurvey>) =>
      conditionsOf({ ...busy, partitions }).problems
    const unreadable = (partitions: ReadonlyArray<PartitionSurvey>) =>
      statusOf({ ...busy, partitions })
    assert.deepStrictEqual(problems(found(0)), [])
    assert.strictEqual(nth(problems(found(1)), 0).code, "unreadable")
    assert.match(nth(problems(found(1)), 0).text, /^1 waiting message .* it; /)
    assert.strictEqual(unreadable(found(3)).deliveries.unreadable, 3)
    // None of the others says: they are of an older version.
    assert.isNull(unreadable([silent]).deliveries.unreadable)
    assert.isNull(unreadable([silent]).partitions[0]?.unreadable)
  })

  it("has null for what is not known of the room", () => {
    const { account, room } = busy
    const silent = { ...room.events, bytes: undefined, limit: undefined, oldestAt: undefined }
    const nothing = {
      ...busy,
      account: { bytes: account?.bytes ?? 0, limit: undefined },
      room: { ...room, events: silent, queues: undefined }
    }
    assert.deepStrictEqual<unknown>(statusOf(nothing).room, {
      events: { bytes: null, limitBytes: null, oldestAt: null },
      history: {
        bytes: room.history.bytes,
        limitBytes: room.history.limit,
        oldestAt: room.history.oldestAt
      },
      deadLetters: { bytes: 1, limitBytes: 100 },
      queues: { bytes: null, limitBytes: null },
      backlogs: { bytes: room.backlogs, limitBytes: null },
      account: { bytes: account?.bytes, limitBytes: null }
    })
  })
})
