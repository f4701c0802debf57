import { EventEmitter } from "node:events"
import type { IncomingMessage } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readBody } from "../../../src/intake/gateway/read-body.ts"

/** Reads a body that comes in chunks. Returns what was read, and the capacity that was taken for it. */
const setUp = (max: number, capacity = Number.POSITIVE_INFINITY, length?: number) => {
  const request = Object.assign(new EventEmitter(), {
    headers: length === undefined ? {} : { "content-length": String(length) },
    complete: true
  })
  const state = { taken: 0 }
  const reading = readBody(request as unknown as IncomingMessage, max, (bytes) => {
    if (state.taken + bytes > capacity) return false
    state.taken += bytes
    return true
  })
  const send = (text: string) => request.emit("data", Buffer.from(text))
  return { reading, send, state, end: () => request.emit("end") }
}

const outcome = ({ reading }: ReturnType<typeof setUp>) =>
  Effect.map(
    Effect.promise(() => reading.read),
    (read) => (read.as === "body" ? read.body.toString() : read.as)
  )

describe("a body", () => {
  it.effect(
    "takes capacity as it comes, at most twice its length, however small its pieces are",
    () =>
      Effect.gen(function* () {
        const one = setUp(1_000_000)
        const text = Array.from({ length: 20_000 }, (_, n) => n % 10).join("")
        for (const character of text) one.send(character)
        one.end()
        assert.strictEqual(yield* outcome(one), text)
        assert.isAtLeast(one.state.taken, 20_000)
        assert.isAtMost(one.state.taken, 40_000)
      })
  )

  it.effect("takes none for what was said to come and has not", () =>
    Effect.gen(function* () {
      const one = setUp(1_000_000, 100, 900_000)
      one.send("ab")
      assert.strictEqual(one.state.taken, 2)
      one.reading.cancel()
      assert.strictEqual(yield* outcome(one), "no-capacity")
    })
  )

  it.effect("ends where it is larger than it may be, or than there is capacity", () =>
    Effect.gen(function* () {
      const large = setUp(3)
      large.send("abc")
      large.send("d")
      assert.strictEqual(yield* outcome(large), "too-large")
      const crowded = setUp(100, 5)
      crowded.send("abcd")
      crowded.send("ef")
      assert.strictEqual(yield* outcome(crowded), "no-capacity")
      const empty = setUp(3)
      empty.end()
      assert.strictEqual(yield* outcome(empty), "")
    })
  )
})
