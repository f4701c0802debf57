import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { PubAck } from "../../src/broker/publication.ts"
import { PublishError } from "../../src/broker/publication.ts"
import { publishOnce } from "../../src/broker/publish-once.ts"

/** A stream whose answers are given: each try ends as the next one says. */
const stream = (...answers: ReadonlyArray<"stored" | "lost answer" | PublishError["reason"]>) => {
  const said: Array<string> = []
  let messages = 0
  const publish = Effect.suspend((): Effect.Effect<PubAck, PublishError> => {
    const answer = answers[said.filter((what) => what === "publish").length] ?? "stored"
    said.push("publish")
    if (answer === "stored" || answer === "lost answer") messages++
    if (answer === "stored") return Effect.succeed({ stream: "S", seq: 1, duplicate: false })
    const reason = answer === "lost answer" ? "timeout" : answer
    return Effect.fail(new PublishError({ subject: "s", reason, code: 0, detail: answer }))
  })
  const find = Effect.sync(() => {
    said.push("find")
    return messages > 0
  })
  return { publish, find, said, messages: () => messages }
}

describe("a message to be stored once", () => {
  it.effect("is published without a search the first time", () =>
    Effect.gen(function* () {
      const { find, publish, said } = stream("stored")
      yield* publishOnce(publish, find)
      assert.deepStrictEqual(said, ["publish"])
    })
  )

  it.effect("is looked for before it is published again, where the answer got lost", () =>
    Effect.gen(function* () {
      const { find, messages, publish, said } = stream("lost answer")
      const store = publishOnce(publish, find)
      yield* Effect.flip(store)
      yield* store
      assert.deepStrictEqual(said, ["publish", "find"])
      assert.strictEqual(messages(), 1)
    })
  )

  it.effect("is published again where it is not found", () =>
    Effect.gen(function* () {
      const { find, publish, said } = stream("timeout", "closed", "stored")
      yield* Effect.retry(publishOnce(publish, find), { times: 2 })
      assert.deepStrictEqual(said, ["publish", "find", "publish", "find", "publish"])
    })
  )

  it.effect(
    "is looked at where the broker calls it a duplicate, and tried again where it is not there",
    () =>
      Effect.gen(function* () {
        const duplicate = { stream: "S", seq: 7, duplicate: true }
        const publish = Effect.succeed(duplicate)
        const nowhere = Effect.succeed(false)
        const refused = yield* Effect.flip(publishOnce(publish, nowhere))
        assert.strictEqual(refused.reason, "rejected")
        assert.deepStrictEqual(yield* publishOnce(publish, Effect.succeed(true)), duplicate)
        const looked: Array<number> = []
        const isAt = ({ seq }: PubAck) => Effect.sync(() => looked.push(seq) > 0)
        assert.deepStrictEqual(yield* publishOnce(publish, nowhere, { isAt }), duplicate)
        assert.deepStrictEqual(looked, [7])
      })
  )

  it.effect("is published again at once where it was refused", () =>
    Effect.gen(function* () {
      const { find, publish, said } = stream("rejected", "no-stream", "stored")
      yield* Effect.retry(publishOnce(publish, find), { times: 2 })
      assert.deepStrictEqual(said, ["publish", "publish", "publish"])
    })
  )

  it.effect("is looked for first where somebody may have tried before", () =>
    Effect.gen(function* () {
      const { find, publish, said } = stream("stored")
      yield* publishOnce(publish, find, { tried: true })
      assert.deepStrictEqual(said, ["find", "publish"])
    })
  )
})
