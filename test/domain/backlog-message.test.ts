import { describe, expect, test } from "vitest"
import { beyondRemoved } from "../../src/broker/losses.ts"
import type { DeliveryReference } from "../../src/domain/backlog-message.ts"
import {
  backlogEntriesIn,
  entryCount,
  isPackable,
  labelHeaders,
  labelIn,
  maxEntries,
  referencesHeader
} from "../../src/domain/backlog-message.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import { placeName, placeOfSlot, readPlace, slotOf } from "../../src/domain/fact.ts"

const streams = { events: "PETREL_EVENTS", queue: "PETREL_DELIVERIES_3" }
const subject = "petrel.backlog.3.acme.shop"
const day = 86_400_000
const begun = 1_790_000_000_000

const reference = (eventSeq: number, eventAt: number): DeliveryReference => ({
  tenant: "acme",
  endpoint: "shop",
  eventSeq,
  eventAt,
  round: "0",
  began: eventAt,
  deadline: eventAt + 3 * day,
  generation: "g1",
  revision: 7,
  progress: untried,
  origin: placeName({ stream: streams.events, seq: eventSeq, at: eventAt }),
  bytes: 300
})

const inMessage = (references: ReadonlyArray<DeliveryReference>) => {
  const headers = new Map([referencesHeader(references, streams)])
  return backlogEntriesIn(subject, (name) => headers.get(name), streams)
}

describe("references in a message", () => {
  const usual = reference(5, begun)
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<DeliveryReference>]> = [
    ["one", [usual]],
    ["events in order", [usual, reference(6, begun + 3), reference(9, begun + 3)]],
    ["an earlier event after a later one", [reference(900_000, begun), usual]],
    ["large sequences", [reference(2 ** 44, begun), reference(2 ** 44 + 1, begun + 2 ** 35)]],
    ["another round", [usual, { ...usual, round: "d12" }, { ...usual, round: "0" }]],
    ["a round that began later", [{ ...usual, began: begun + day, deadline: begun + 4 * day }]],
    ["a deadline before its begin", [{ ...usual, deadline: begun - 1 }]],
    ["another window", [usual, { ...usual, deadline: begun + 60_000 }]],
    ["another configuration", [usual, { ...usual, generation: "gé2", revision: 8 }, usual]],
    ["from the queue", [{ ...usual, origin: `${streams.queue}:77:${begun + 12}` }]],
    ["from elsewhere", [{ ...usual, origin: `PETREL_BACKLOG_1:77.3:${begun}` }]],
    ["from nowhere", [{ ...usual, origin: undefined } as unknown as DeliveryReference]],
    [
      "with progress",
      [{ ...usual, progress: { attempts: 3, lastStatus: 503, lastError: "ü\n" } }, usual]
    ],
    ["that has ended", [{ ...usual, progress: { attempts: 0, ends: "permanent" } }]],
    ["without body", [usual, { ...usual, bytes: 0 }, { ...usual, bytes: 1_000_000 }]],
    ["256", Array.from({ length: maxEntries }, (_, n) => reference(1 + 3 * n, begun + 2 * n))]
  ]

  test.each(cases)("%s come back as they were", (_name, references) => {
    const read = inMessage(references)
    expect(read?.map((of) => of.entry)).toEqual(references.map((_, index) => index + 1))
    const back = read?.map((of) => (of.entry === undefined ? undefined : of.reference))
    expect(back).toEqual(JSON.parse(JSON.stringify(references)))
    const headers = new Map([referencesHeader(references, streams)])
    expect(entryCount((name) => headers.get(name))).toBe(references.length)
  })

  test("256 of consecutive events take less than 10 bytes each", () => {
    const all = Array.from({ length: maxEntries }, (_, n) => reference(1 + n, begun + 2 * n))
    const [, value] = referencesHeader(all, streams)
    expect(value.length / maxEntries).toBeLessThan(10)
  })

  test("a message of another version, or cut off, is unreadable", () => {
    const [name, value] = referencesHeader([usual, reference(6, begun)], streams)
    const bytes = Buffer.from(value.slice(2), "base64")
    const read = (text: string) =>
      backlogEntriesIn(subject, (asked) => (asked === name ? text : undefined), streams)
    expect(read(`2 ${Buffer.from([2, ...bytes.subarray(1)]).toString("base64")}`)).toBeUndefined()
    for (let length = 2; length < bytes.length; length++) {
      const short = read(`2 ${bytes.subarray(0, length).toString("base64")}`)
      expect(short === undefined || short.length === 1).toBe(true)
    }
  })

  test("numbers that are no integers are not packed", () => {
    expect(isPackable(usual)).toBe(true)
    expect(isPackable({ ...usual, deadline: begun + 0.5 })).toBe(false)
    expect(isPackable({ ...usual, eventAt: Number.POSITIVE_INFINITY })).toBe(false)
  })
})

test("a message with a body holds one delivery, without a number", () => {
  const { bytes, ...waiting } = reference(5, begun)
  const delivery = { ...waiting, event: "e1", type: "order.paid", content: {} }
  const headers = new Map(deliveryHeaders(delivery, "id"))
  expect(backlogEntriesIn(subject, (name) => headers.get(name), streams)).toEqual([
    { entry: undefined, delivery }
  ])
  expect(backlogEntriesIn(subject, () => undefined, streams)).toBeUndefined()
})

test("a label comes back as it was; a message of an older version has none", () => {
  for (const label of [
    { stored: 1, owner: begun, replaces: [] },
    { stored: 1_000_000, owner: begun, replaces: [7, 12] }
  ]) {
    const headers = new Map(labelHeaders(label))
    expect(labelIn((name) => headers.get(name))).toEqual(label)
  }
  expect(labelIn(() => undefined)).toBeUndefined()
})

test.each([
  { stream: "PETREL_BACKLOG_1", seq: 12, at: begun },
  { stream: "PETREL_BACKLOG_1", seq: 12, at: begun, entry: 1 },
  { stream: "PETREL_BACKLOG_1", seq: 2 ** 40, at: begun, entry: 256 },
  // Where a backlog that was removed begins again, a hundred years from now at the latest.
  { stream: "PETREL_BACKLOG_1", seq: beyondRemoved(begun, true) + 1, at: begun, entry: 3 },
  { stream: "PETREL_BACKLOG_1", seq: beyondRemoved(Date.UTC(2109), true), at: begun, entry: 255 }
])("the place of %j has a name and a slot, and comes back from both", (place) => {
  expect(readPlace(placeName(place))).toEqual(place)
  const { entry, seq } = placeOfSlot(slotOf(place))
  expect({ seq, entry }).toEqual({ seq: place.seq, entry: place.entry })
  expect(slotOf(place)).toBeGreaterThanOrEqual(place.seq)
  expect(slotOf(place)).toBeLessThan(place.seq + 1)
})
