import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import type { EventReference } from "../../../src/delivery/bodies/event-bodies.ts"
import { LeftBodies, sentBytes } from "../../../src/delivery/bodies/left-bodies.ts"
import type { Delivery } from "../../../src/domain/delivery.ts"
import type { EventContents } from "../../../src/domain/event.ts"
import { deliveryOf, idle } from "../made-deliveries.ts"

const hour = 3_600_000
const day = 24 * hour

/** Bodies that are one byte long: the sequence of their event. */
const contentsOf = ({ eventSeq }: EventReference): EventContents => ({
  ...{ event: "evt", type: "paid", content: {} },
  body: new Uint8Array([eventSeq])
})

/** Bodies of 10 bytes or more are left; `read` holds which events were read together. */
const makeLeft = (
  before: Effect.Effect<void, BrokerError> = Effect.void,
  eventAge: () => number | undefined = () => 7 * day
) => {
  const read: Array<ReadonlyArray<number>> = []
  const left = new LeftBodies({
    bodies: {
      read: (references) =>
        Effect.suspend(() => {
          read.push(references.map(({ eventSeq }) => eventSeq))
          return Effect.as(before, references.map(contentsOf))
        })
    },
    eventAge,
    least: 10
  })
  return { left, read }
}

const leftOf = (eventSeq: number, changes: Partial<Delivery> = {}) => ({
  delivery: deliveryOf({ eventSeq, leftBytes: 1_000, ...changes }),
  body: new Uint8Array()
})

const together = { concurrency: "unbounded" } as const

describe("the body of a retry", () => {
  const body = new Uint8Array(10)
  for (const [what, bytes, eventAge, isLeft] of [
    ["is left in its event", body, 7 * day, true],
    ["is kept where it is small", body.slice(1), 7 * day, false],
    ["is kept where its event may be gone before its deadline", body, hour, false],
    ["is kept until it is known how long events are", body, undefined, false]
  ] as const)
    it(what, () => {
      const { left } = makeLeft(Effect.void, () => eventAge)
      const stored = left.leave({ delivery: deliveryOf(), body: bytes })
      assert.strictEqual(stored.delivery.leftBytes, isLeft ? 10 : undefined)
      assert.lengthOf(stored.body, isLeft ? 0 : bytes.length)
      assert.strictEqual(sentBytes(stored), bytes.length)
    })

  it("stays left", () => {
    const stored = leftOf(7)
    assert.deepStrictEqual(makeLeft().left.leave(stored), stored)
  })

  it.effect("is not asked for where its message holds it", () =>
    Effect.gen(function* () {
      const { left, read } = makeLeft()
      assert.strictEqual(yield* left.read({ delivery: deliveryOf(), body }), body)
      assert.deepStrictEqual(read, [])
    })
  )

  it.effect("is read together with those that are asked for meanwhile, by tenant", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const { left, read } = makeLeft(Deferred.await(go))
      const readAll = (all: ReadonlyArray<ReturnType<typeof leftOf>>) =>
        Effect.forkChild(Effect.forEach(all, (one) => left.read(one), together))
      const first = yield* readAll([leftOf(1)])
      yield* idle
      const later = yield* readAll([leftOf(5), leftOf(4), leftOf(9, { tenant: "other" })])
      yield* idle
      // Another tenant's does not wait.
      assert.deepStrictEqual(read, [[1], [9]])
      yield* Deferred.succeed(go, undefined)
      const found = [...(yield* Fiber.join(first)), ...(yield* Fiber.join(later))]
      assert.deepStrictEqual(
        found.map((one) => (one === "gone" ? one : one[0])),
        [1, 5, 4, 9]
      )
      assert.deepStrictEqual(read.slice(2), [[5, 4]])
    })
  )

  it.effect("is read for itself where reading it with others failed", () =>
    Effect.gen(function* () {
      let tries = 0
      const error = new BrokerError({ operation: "read", cause: new Error("no answer") })
      const { left, read } = makeLeft(
        Effect.suspend(() => (tries++ === 0 ? Effect.fail(error) : Effect.void))
      )
      const [first, second] = yield* Effect.forEach(
        [leftOf(1), leftOf(2)],
        (one) => Effect.exit(left.read(one)),
        together
      )
      assert.deepStrictEqual([first?._tag, second?._tag], ["Failure", "Success"])
      assert.deepStrictEqual(read.at(-1), [2])
    })
  )

  it.effect("is read alone where others would make it more than 4 MiB", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const { left, read } = makeLeft(Deferred.await(go))
      const large = { leftBytes: 3 * 1024 * 1024 }
      const reading = yield* Effect.forkChild(
        Effect.forEach(
          [leftOf(1), leftOf(2, large), leftOf(3, large)],
          (one) => left.read(one),
          together
        )
      )
      yield* idle
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(reading)
      assert.deepStrictEqual(read, [[1], [2], [3]])
    })
  )
})
