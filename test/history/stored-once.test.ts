import { assert, describe, it } from "@effect/vitest"
import { PublishError } from "../../src/broker/publication.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { StoredOnce } from "../../src/history/facts.ts"

const plan = { part: 0, last: true, endpoints: [], skipped: [] }
const fact = (changes: Partial<Fact> = {}): Fact => ({
  ...{ v: 1, kind: "delivered", at: 1, tenant: "acme", endpoint: "hook" },
  ...changes
})
const ack = (duplicate: boolean) => ({ stream: "HISTORY", seq: 1, duplicate })
const failed = (reason: PublishError["reason"]) =>
  new PublishError({ subject: "s", reason, code: 0, detail: "" })

/** Returns the number of counted facts after results of tries with one id. */
const after = (
  results: ReadonlyArray<ReturnType<typeof ack> | PublishError>,
  one: Fact = fact()
) => {
  let count = 0
  const once = new StoredOnce(() => void count++)
  for (const result of results) once.answered(one, "id", result)
  return count
}

describe("StoredOnce", () => {
  it.each([
    ["stored", [ack(false)], 1],
    ["stored by a former owner", [ack(true)], 0],
    ["refused, then stored", [failed("rejected"), ack(false)], 1],
    ["refused, then found of a former owner", [failed("rejected"), ack(true)], 0],
    ["an answer lost, then found", [failed("timeout"), ack(true)], 1],
    ["an answer lost, then stored", [failed("timeout"), ack(false)], 1],
    [
      "an answer lost twice, then found twice",
      [failed("timeout"), failed("closed"), ack(true), ack(true)],
      1
    ]
  ])("counts what was %s", (_, results, count) => {
    assert.strictEqual(after(results), count)
  })

  it("leaves an outcome with a plan to who looks whose it is", () => {
    assert.strictEqual(after([failed("timeout"), ack(true)], fact({ plan })), 0)
    assert.strictEqual(after([ack(false)], fact({ plan })), 1)
    assert.strictEqual(after([failed("timeout"), ack(true)], fact({ kind: "routed", plan })), 1)
  })

  it("remembers a bounded number of unknown results", () => {
    let count = 0
    const once = new StoredOnce(() => void count++)
    for (let n = 0; n < 20_000; n++) once.answered(fact(), `${n}`, failed("timeout"))
    for (let n = 0; n < 20_000; n++) once.answered(fact(), `${n}`, ack(true))
    assert.strictEqual(count, 10_000)
  })
})
