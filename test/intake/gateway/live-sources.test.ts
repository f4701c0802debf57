import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { onTestFinished } from "vitest"
import { Source } from "../../../src/domain/source.ts"
import { SourceTable } from "../../../src/intake/gateway/live-sources.ts"
import { systemTimers, useTimers } from "../../../src/time/timers.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(Source))

describe("a source that is changed", () => {
  const text = (changes: object) => {
    const source = encode({
      ...{ v: 1, tenant: "acme", id: "hub", provider: "github", createdAt: 0, updatedAt: 0 },
      secrets: [{ value: "s", createdAt: 0 }]
    })
    return JSON.stringify({ ...JSON.parse(source), rate: { perSecond: 1, burst: 2 }, ...changes })
  }

  it("keeps what is left of its rate, also when the rate changes", () => {
    onTestFinished(useTimers({ ...systemTimers, monotonicMs: () => 0 }))
    const sources = new SourceTable(() => Promise.reject(new Error("none is asked for")))
    const takes = (now = 0) => sources.get("acme.hub", 0)?.rate?.take(now)
    sources.hear("acme.hub", text({}))
    assert.deepStrictEqual([takes(), takes(), takes()], [true, true, false])
    sources.hear("acme.hub", text({ updatedAt: 1 }))
    assert.isFalse(takes())
    sources.hear("acme.hub", text({ updatedAt: 2, rate: { perSecond: 1, burst: 3 } }))
    assert.isFalse(takes())
    assert.deepStrictEqual([takes(1_000), takes(1_000)], [true, false])
    sources.hear("acme.hub", text({ updatedAt: 3, rate: undefined }))
    assert.isUndefined(sources.get("acme.hub", 0)?.rate)
  })
})
