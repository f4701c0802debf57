import { assert, describe, it } from "@effect/vitest"
import { deadLetterQuota } from "../../src/policy/storage-quotas.ts"

const use = (messages: number, byTenant: Readonly<Record<string, number>>) => ({
  bytes: messages * 100,
  maxBytes: 10_000,
  messages,
  byTenant: new Map(Object.entries(byTenant))
})

describe("the quota of dead letters", () => {
  const cases: ReadonlyArray<
    readonly [name: string, quota: number | undefined, ...Parameters<typeof deadLetterQuota>]
  > = [
    ["is none while at most half is used", undefined, use(50, { a: 40, b: 10 }), "a"],
    ["is none where one tenant has them all", undefined, use(90, { a: 90 }), "a"],
    ["is an equal part beyond that", 50, use(60, { a: 50, b: 10 }), "a"],
    ["counts the one who is about to have the first", 50, use(60, { a: 60 }), "b"],
    ["is the same for all", 33, use(60, { a: 40, b: 15, c: 5 }), "c"],
    ["is one at least", 1, { ...use(2, { a: 1, b: 1 }), bytes: 9_999 }, "c"],
    ["is none without a limit", undefined, { ...use(60, { a: 50, b: 10 }), maxBytes: -1 }, "a"],
    ["is none where nobody counted", undefined, { ...use(60, {}), byTenant: undefined }, "a"]
  ]
  for (const [name, quota, ...given] of cases)
    it(name, () => assert.strictEqual(deadLetterQuota(...given), quota))
})
