import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Endpoint, type EndpointJson } from "../../src/domain/endpoint.ts"
import type { Event } from "../../src/domain/event.ts"
import type { Plan } from "../../src/domain/fact.ts"
import type { RoutableEndpoint } from "../../src/endpoints/directory.ts"
import { DirectoryTable } from "../../src/endpoints/directory-table.ts"
import { candidates, endOf, isSole, nextPart, partSize } from "../../src/routing/plan.ts"
import { live, now } from "../delivery/made-deliveries.ts"
import { quickRetry } from "../kit/engine.ts"
import { event, plannedFor } from "./made-routing.ts"

const listed = (id: string, isDisabled = false): RoutableEndpoint => ({
  ...{ id, isDisabled, key: `acme.${id}`, generation: "g", revision: 1, window: 60_000 },
  windows: undefined
})

/** The next part, as text: what it plans, what it skips, and whether it is the last. */
const part = (
  matching: ReadonlyArray<RoutableEndpoint>,
  after = "",
  most = 10,
  unreadable: ReadonlyArray<string> = []
) => {
  const choice = { all: candidates(matching, unreadable), directory: 9 }
  const { keys, plan } = nextPart(event, choice, 3, after, most)
  assert.deepStrictEqual(
    keys,
    plan.endpoints.map(({ id }) => `acme.${id}`)
  )
  assert.deepInclude(plan, { part: 3, directory: 9 })
  const planned = plan.endpoints.map(({ id }) => id).join(" ")
  const skipped = plan.skipped.map(({ id, reason }) => ` -${id}:${reason}`).join("")
  return `${planned}${skipped}${plan.last ? "." : " …"}`
}

describe("the next part of a plan", () => {
  const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => listed(id))
  const all = [d, b, a, c].filter((each) => each !== undefined)

  for (const [name, made, expected] of [
    ["is empty and the last where nobody wants the event", () => part([]), "."],
    ["has all in the order of their ids", () => part(all), "a b c d."],
    ["has as many as fit", () => part(all, "", 3), "a b c …"],
    ["is the last where just all fit", () => part(all, "", 4), "a b c d."],
    ["begins behind the one before", () => part(all, "b", 1), "c …"],
    ["begins behind an endpoint that is gone", () => part(all, "bb", 3), "c d."],
    ["is empty where the one before was the last", () => part(all, "d"), "."],
    ["skips the disabled", () => part([listed("a", true), listed("b")]), "b -a:endpoint-disabled."],
    [
      "skips those that cannot be read, in their order",
      () => part([listed("a"), listed("c")], "", 2, ["b"]),
      "a -b:endpoint-unreadable …"
    ]
  ] as const)
    it(name, () => assert.strictEqual(made(), expected))

  it("fixes the deadline by the time of the event, and what the router saw", () => {
    const choice = { all: candidates([listed("a")], []), directory: 9 }
    assert.deepStrictEqual(nextPart(event, choice, 0, "", 1).plan.endpoints, [plannedFor("a")])
  })
})

describe("a part of a plan", () => {
  const of = (changes: Partial<Plan>): Plan => ({
    ...{ part: 0, last: true, endpoints: [plannedFor("b")], skipped: [] },
    ...changes
  })
  const skipped = (id: string) => [{ id, reason: "endpoint-disabled" }]

  it("may be left to the outcome of its only delivery where it says nothing else", () => {
    assert.isTrue(isSole(of({})))
    for (const more of [
      { last: false },
      { part: 1 },
      { endpoints: [] },
      { endpoints: [plannedFor("a"), plannedFor("b")] },
      { skipped: skipped("a") }
    ])
      assert.isFalse(isSole(of(more)), JSON.stringify(more))
  })

  it("ends with its last endpoint, planned or skipped", () => {
    assert.strictEqual(endOf(of({})), "b")
    assert.strictEqual(endOf(of({ skipped: skipped("a") })), "b")
    assert.strictEqual(endOf(of({ skipped: skipped("c") })), "c")
  })

  it("has no more endpoints than the broker takes in one message, and at least one", () => {
    assert.strictEqual(partSize(8 * 1024 ** 2), 1_000)
    assert.strictEqual(partSize(64 * 1024), 240)
    assert.strictEqual(partSize(1_024), 1)
  })
})

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
