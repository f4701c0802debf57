import { assert, describe, it } from "@effect/vitest"
import { AttemptedPlaces } from "../../../src/delivery/recovery/attempted-places.ts"
import type { Place } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"

const of = { tenant: "acme", endpoint: "hook", eventSeq: 1, eventAt: 1_000, round: "0" }

/** A message that was stored so many ms after the event. */
const at = (ms: number, stream = "queue"): Place => ({ stream, seq: ms, at: of.eventAt + ms })

const [first, second, third] = [at(1), at(20), at(300, "backlog")]

const failedAt = (...seen: ReadonlyArray<readonly [Place, number]>) => {
  const places = new AttemptedPlaces()
  const left = seen.map(([place, attempts]) => places.failed(of, { place, attempts }, undefined))
  return { places, left }
}

describe("places where a delivery failed", () => {
  it("are left once it has ended elsewhere", () => {
    const { places } = failedAt([first, 1])
    assert.deepStrictEqual(places.ended(of), first)
    assert.isUndefined(places.ended(of))
  })

  it("are left for a later message with more attempts", () => {
    assert.deepStrictEqual(failedAt([first, 1], [second, 2], [third, 3]).left, [
      undefined,
      first,
      second
    ])
  })

  it("stay while it fails there", () => {
    const { left, places } = failedAt([first, 1], [first, 2])
    assert.deepStrictEqual(left, [undefined, undefined])
    const waits = (attempts: number) => places.waits(of, { place: third, attempts }, undefined)
    assert.isUndefined(waits(1))
    assert.deepStrictEqual(waits(2), first)
  })

  it("stay for a message that is not later, which may have been left itself", () => {
    const { left, places } = failedAt([second, 2], [first, 3])
    assert.deepStrictEqual(left, [undefined, undefined])
    assert.isUndefined(places.waits(of, { place: first, attempts: 3 }, undefined))
    assert.deepStrictEqual(places.ended(of), second)
  })

  it("are left for a message that names them, whatever the clocks of two brokers say", () => {
    const { places } = failedAt([second, 1])
    const early = { place: at(2, "backlog"), attempts: 1 }
    assert.isUndefined(places.waits(of, early, undefined))
    assert.deepStrictEqual(places.waits(of, early, placeName(second)), second)
  })

  it("are told by round and endpoint", () => {
    const { places } = failedAt([first, 1])
    for (const other of [{ round: "1" }, { endpoint: "other" }, { eventSeq: 2 }, { eventAt: 2 }])
      assert.isUndefined(places.ended({ ...of, ...other }))
  })
})
