import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Endpoint, type EndpointJson } from "../../src/domain/endpoint.ts"
import type { Event } from "../../src/domain/event.ts"
import { DirectoryTable } from "../../src/endpoints/directory-table.ts"
import { candidates, nextPart } from "../../src/routing/plan.ts"
import { live, now } from "../delivery/made-deliveries.ts"
import { quickRetry } from "../kit/engine.ts"

const usual = Schema.encodeSync(Endpoint)(live.config)
const hour = 3_600_000

/** The deadlines in the plan of an event, ms after it. */
const deadlines = (type: string, endpoints: Readonly<Record<string, Partial<EndpointJson>>>) => {
  const table = new DirectoryTable()
  for (const [id, changes] of Object.entries(endpoints)) {
    const text = JSON.stringify({ ...usual, id, ...changes })
    table.put(`acme.${id}`, Schema.decodeUnknownSync(Endpoint)(JSON.parse(text)), text, 1)
  }
  const event: Event = {
    ...{ tenant: "acme", type, id: "e", seq: 1, at: now, content: {} }
  }
  const choice = { all: candidates(table.match("acme", type), []), directory: 1 }
  const { plan } = nextPart(event, choice, 0, "", 10)
  return plan.endpoints.map(({ deadline, id }) => [id, deadline - now])
}

describe("a plan", () => {
  const retryFor = {
    "invoice.>": "github",
    "invoice.*.eu": quickRetry({ window: "2 minutes" })
  }

  it("gives each endpoint the window of its policy, or of that for the event's type", () => {
    const endpoints = { a: {}, b: { retryFor }, c: { retry: "slack", retryFor } }
    assert.deepStrictEqual(deadlines("order.paid", endpoints), [
      ["a", hour],
      ["b", hour],
      ["c", hour / 2]
    ])
    assert.deepStrictEqual(deadlines("invoice.paid", endpoints), [
      ["a", hour],
      ["b", 4 * hour],
      ["c", 4 * hour]
    ])
    assert.deepStrictEqual(deadlines("invoice.paid.eu", endpoints), [
      ["a", hour],
      ["b", 120_000],
      ["c", 120_000]
    ])
  })
})
