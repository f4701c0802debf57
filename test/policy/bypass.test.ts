import { assert, describe, it } from "@effect/vitest"
import type { Bypass, FloodStep, FloodView, Way } from "../../src/policy/bypass.ts"
import {
  announcedForMs,
  floodAbove,
  floodStep,
  floodTenants,
  isPast,
  wayOf
} from "../../src/policy/bypass.ts"

const announced: Bypass = {
  consumer: "bypass-1-2",
  tenants: new Set(["calm"]),
  flooding: ["flood"],
  from: undefined,
  until: undefined
}
const open: Bypass = { ...announced, from: 100 }
const closing: Bypass = { ...open, until: 5_000 }

describe("the way of an event", () => {
  for (const [what, bypass, event, way] of [
    ["is the main one without a bypass", undefined, {}, "main"],
    ["is the main one for a tenant that does not pass", open, { tenant: "flood" }, "main"],
    ["is the main one without a tenant", open, { tenant: undefined }, "main"],
    ["is not decided while a bypass is only announced", announced, {}, "undecided"],
    ["is the main one before the bypass begins", open, { seq: 99 }, "main"],
    ["is the bypass from there on", open, { seq: 100 }, "bypass"],
    ["is the bypass until it ends", closing, { at: 4_999 }, "bypass"],
    ["is the main one from its end on", closing, { at: 5_000 }, "main"],
    [
      "is the main one for what was stored before the bypass, whenever",
      closing,
      { seq: 99 },
      "main"
    ]
  ] satisfies ReadonlyArray<readonly [string, Bypass | undefined, object, Way]>)
    it(what, () => {
      assert.strictEqual(wayOf(bypass, { tenant: "calm", seq: 100, at: 1_000, ...event }), way)
    })
})

describe("the tenants of a flood", () => {
  const sample = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).flatMap(([tenant, count]) => Array<string>(count).fill(tenant))
  const known = ["a", "b", "c", "d"]

  const even = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`t${index}`, 1]))
  for (const [what, counts, flooding, passing] of [
    ["are the one whose events wait, and all others", { a: 30, b: 2 }, ["a"], ["b", "c", "d"]],
    [
      "are those of which each has more than an eighth, and all others",
      { a: 20, b: 8, c: 4 },
      ["a", "b"],
      ["c", "d"]
    ],
    ["are none where nobody has more than others", even, [], []],
    ["are none where nothing was read", {}, [], []],
    ["may be one without endpoints", { e: 32 }, ["e"], known]
  ] satisfies ReadonlyArray<
    readonly [string, Record<string, number>, ReadonlyArray<string>, ReadonlyArray<string>]
  >)
    it(what, () => {
      assert.deepStrictEqual(floodTenants(sample(counts), known), { flooding, passing })
    })
  it("leave nobody to pass where there is nobody else", () => {
    assert.deepStrictEqual(floodTenants(sample({ a: 32 }), ["a"]).passing, [])
  })
  it("that pass are no more than the broker takes as filters", () => {
    const many = Array.from({ length: 2_000 }, (_, index) => `t${index}`)
    assert.lengthOf(floodTenants(sample({ flood: 32 }), many).passing, 500)
  })
})

describe("the next step about a flood", () => {
  const seenForMs = announcedForMs
  for (const [what, view, step] of [
    ["is none while few events wait", { waiting: floodAbove }, "none"],
    ["is to ask whose they are where many do", { waiting: floodAbove + 1 }, "sample"],
    ["is to wait until all know of it", { bypass: announced, seenForMs: seenForMs - 1 }, "none"],
    ["is to open it then", { bypass: announced, seenForMs }, "open"],
    ["is to give up what could not be opened", { bypass: announced, seenForMs: 60_000 }, "end"],
    ["is to leave it open while many wait", { bypass: open, seenForMs, waiting: 256 }, "none"],
    [
      "is to leave it open for a while",
      { bypass: open, seenForMs: seenForMs - 1, waiting: 0 },
      "none"
    ],
    ["is to close it once few wait", { bypass: open, seenForMs, waiting: 255 }, "close"],
    [
      "is to wait for the end, though nothing waits",
      { bypass: closing, seenForMs, routedTo: 1_000 },
      "none"
    ],
    [
      "is to wait until all that passed was passed over",
      { bypass: closing, lastThen: 1_000, routedTo: 999 },
      "none"
    ],
    ["is to end it then", { bypass: closing, lastThen: 1_000, routedTo: 1_000 }, "end"],
    [
      "is none of a new bypass before that",
      { bypass: closing, waiting: 1_000_000, routedTo: 1 },
      "none"
    ]
  ] satisfies ReadonlyArray<readonly [string, Partial<FloodView>, FloodStep]>)
    it(what, () => {
      const none: FloodView = {
        ...{ bypass: undefined, seenForMs: 0, waiting: 0, brokerMs: 0, routedTo: 0 },
        lastThen: undefined
      }
      assert.strictEqual(floodStep({ ...none, ...view }), step)
    })

  it("knows that no more events pass a minute after the last could be stored", () => {
    assert.isFalse(isPast({ bypass: open, brokerMs: Number.MAX_SAFE_INTEGER }))
    assert.isFalse(isPast({ bypass: closing, brokerMs: 5_000 + 59_999 }))
    assert.isTrue(isPast({ bypass: closing, brokerMs: 5_000 + 60_000 }))
  })
})
