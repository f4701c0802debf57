import { assert, describe, it } from "@effect/vitest"
import { RoutedEvents } from "../../src/history/audit/lost-events.ts"
import type { AuditReach } from "../../src/history/audit/reach.ts"

const base = Date.parse("2026-11-22T20:00:00.000Z")
/** Events are stored a second apart, also in a stream that was made again. */
const at = (seq: number) => base + (seq % 1_000_000) * 1_000

const reach = (changes: {
  plansSince?: number
  since?: number
  until?: number
}): Pick<AuditReach, "plansSince" | "scope"> => {
  const { plansSince = 0, since = 0, until = Number.POSITIVE_INFINITY } = changes
  const isWhole = plansSince === 0 && since === 0
  return {
    plansSince,
    scope: { firstEvent: 1, firstKept: 1, lastEvent: 100, since, until, tenant: undefined, isWhole }
  }
}

/** The gaps among events that were routed, in this order. */
const gaps = (
  end: number,
  routed: ReadonlyArray<number>,
  changes: Parameters<typeof reach>[0] = {}
) => {
  const events = new RoutedEvents(end)
  for (const seq of routed) events.add(seq, at(seq))
  return events.lost(reach(changes)).map(({ eventSeq, toEventSeq }) => [eventSeq, toEventSeq])
}

describe("events that left the event stream", () => {
  it("were routed, in whatever order facts tell of them", () => {
    assert.deepStrictEqual(gaps(6, [1, 2, 3, 4, 5]), [])
    assert.deepStrictEqual(gaps(6, [5, 3, 1, 2, 4, 3, 5]), [])
    assert.deepStrictEqual(gaps(1, []), [])
    // Those that are stored are judged elsewhere.
    assert.deepStrictEqual(gaps(4, [1, 2, 3, 9, 12]), [])
  })

  it("are lost where no fact is about them", () => {
    assert.deepStrictEqual(gaps(8, [3, 1, 6, 5]), [
      [2, 2],
      [4, 4],
      [7, 7]
    ])
    assert.deepStrictEqual(gaps(101, []), [[1, 100]])
    assert.deepStrictEqual(gaps(101, [40]), [
      [1, 39],
      [41, 100]
    ])
  })

  it("are not judged where the history may have dropped their plans", () => {
    const plansSince = at(20)
    assert.deepStrictEqual(gaps(50, [], { plansSince }), [])
    assert.deepStrictEqual(gaps(50, [10, 12, 19, 22, 24], { plansSince }), [
      [23, 23],
      [25, 49]
    ])
  })

  it("are not counted where the stream was removed and made again", () => {
    const begins = 28_727_241_006_561
    assert.deepStrictEqual(gaps(begins, [1, 2, 3]), [])
    assert.deepStrictEqual(gaps(begins + 3, [1, 3, begins, begins + 2]), [
      [2, 2],
      [begins + 1, begins + 1]
    ])
  })

  it("are of the range that was asked for", () => {
    const routed = [10, 12, 20, 22, 30, 32]
    assert.deepStrictEqual(gaps(33, routed, { since: at(20) }), [
      [13, 19],
      [21, 21],
      [23, 29],
      [31, 31]
    ])
    assert.deepStrictEqual(gaps(33, routed, { until: at(11) }), [
      [1, 9],
      [11, 11]
    ])
  })

  it("are named with the times of those around them", () => {
    const events = new RoutedEvents(6)
    events.add(2, at(2))
    events.add(4, at(4))
    assert.deepStrictEqual(
      events.lost(reach({})).map(({ says }) => says),
      [
        "event 1 was stored before 2026-11-22T20:00:02.000Z, and left the event stream before it was routed: publish it again",
        "event 3 was stored after 2026-11-22T20:00:02.000Z and before 2026-11-22T20:00:04.000Z, and left the event stream before it was routed: publish it again",
        "event 5 was stored after 2026-11-22T20:00:04.000Z, and left the event stream before it was routed: publish it again"
      ]
    )
  })
})
