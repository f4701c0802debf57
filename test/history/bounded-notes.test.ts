import { assert, describe, it } from "@effect/vitest"
import {
  boundedCautions,
  boundedRemarks,
  type Caution,
  type Remark
} from "../../src/history/audit/bounded-notes.ts"

const caution = (tenant: string, events: number): Caution => ({
  kind: "ids-without-tenant",
  ...{ tenant, events, says: "" }
})
const remark = (number: number): Remark => ({
  kind: "health-differs",
  ...{ tenant: "acme", endpoint: `e${number}`, says: "" }
})
const numbers = (count: number) => Array.from({ length: count }, (_, number) => number + 1)

describe("the cautions of an audit", () => {
  it("are told one by one up to 20 of a kind, those of most events first", () => {
    const told = boundedCautions(numbers(20).map((number) => caution(`t${number}`, number)))
    assert.deepStrictEqual(
      told.map(({ events }) => events),
      numbers(20).reverse()
    )
  })

  it("are one for all further tenants, which leaves out none of the events", () => {
    const behind: Caution = { kind: "source-behind", tenant: "acme", events: 1, says: "" }
    const all = numbers(2_000).map((number) => caution(`t${number}`, number))
    const told = boundedCautions([...all, behind])
    assert.lengthOf(told, 22)
    assert.deepStrictEqual(told[20], {
      kind: "ids-without-tenant",
      tenant: "_",
      events: (1_980 * 1_981) / 2,
      says: "the same is true of 1,961,190 events of 1,980 more tenants"
    })
    assert.deepStrictEqual(told[21], behind)
  })
})

describe("the remarks of an audit", () => {
  it("are told one by one up to 20", () => {
    assert.deepStrictEqual(boundedRemarks(numbers(20).map(remark)), numbers(20).map(remark))
  })

  it("are one for all further endpoints", () => {
    const told = boundedRemarks(numbers(10_000).map(remark))
    assert.deepStrictEqual(told.slice(0, 20), numbers(20).map(remark))
    assert.deepStrictEqual(told.slice(20), [
      {
        kind: "health-differs",
        tenant: "_",
        endpoint: "_",
        says: "the same is true of 9,980 more endpoints"
      }
    ])
  })
})
