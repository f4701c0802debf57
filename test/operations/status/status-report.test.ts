import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { PartitionSurvey } from "../../../src/delivery/introspection/survey.ts"
import { conditionsOf } from "../../../src/operations/status/status-conditions.ts"
import { Status, statusOf } from "../../../src/operations/status/status-report.ts"
import { nth } from "../../kit/engine.ts"
import { busy, partition, silent } from "./surveys.ts"

const isStatus = Schema.is(Status)

describe("the state of an installation", () => {
  it("is as its schema says", () => {
    assert.isTrue(isStatus(statusOf(busy)))
  })

  it("has a problem where messages are unreadable, as far as any owner says", () => {
    const [first = partition(0), ...others] = busy.partitions
    const mute = { ...first, ...silent }
    const found = (unreadable: number) => [...others, { ...first, unreadable }]
    const problems = (partitions: ReadonlyArray<PartitionSurvey>) =>
      conditionsOf({ ...busy, partitions }).problems
    const unreadable = (partitions: ReadonlyArray<PartitionSurvey>) =>
      statusOf({ ...busy, partitions })
    assert.deepStrictEqual(problems(found(0)), [])
    assert.strictEqual(nth(problems(found(1)), 0).code, "unreadable")
    assert.match(nth(problems(found(1)), 0).text, /^1 waiting message .* it; /)
    assert.strictEqual(unreadable(found(3)).deliveries.unreadable, 3)
    // None of the others says: they are of an older version.
    assert.isNull(unreadable([mute]).deliveries.unreadable)
    assert.isNull(unreadable([mute]).partitions[0]?.unreadable)
  })

  it("has null for what is not known of the space", () => {
    const { space } = busy
    const unknown = { bytes: null, limitBytes: null }
    const events = { ...space.events, space: { ...unknown, oldestAt: null } }
    const nothing = { ...busy, account: unknown, space: { ...space, events, queues: unknown } }
    const state = statusOf(nothing).room
    assert.deepStrictEqual(state, {
      ...{ account: unknown, queues: unknown, backlogs: space.backlogs },
      events: { ...unknown, oldestAt: null },
      history: space.history.space,
      deadLetters: { bytes: 1, limitBytes: 100 }
    })
  })
})
