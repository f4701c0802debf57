import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { NewEvent } from "../../../src/operations/events/new-event.ts"
import { checkEvent } from "../../../src/operations/events/new-event.ts"

const event: NewEvent = { tenant: "acme", type: "invoice.paid" }

const check = (changes: Partial<NewEvent>) => checkEvent({ ...event, ...changes }, "evt_1")
const published = (changes: Partial<NewEvent>) => Result.getOrThrow(check(changes))
const problems = (changes: Partial<NewEvent>) => Result.getOrThrow(Result.flip(check(changes)))

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

describe("an event to be published", () => {
  it.each([
    [undefined, "acme.evt_1"],
    ["42", "acme.42"],
    ["acme.42", "acme.42"],
    ["acme-42", "acme.acme-42"],
    ["acme2.42", "acme.acme2.42"]
  ])("with the id %s is published as %s", (id, expected) => {
    const { headers, id: given } = published({ id })
    assert.strictEqual(given, expected)
    assert.deepStrictEqual(headers, [["Nats-Msg-Id", expected]])
  })

  it("never shares an id with an event of another tenant", () => {
    const tenants = ["a", "a-b", "a_b", "b"]
    const given = ["x", "b-x", "a-b-x", "a.x", "a-b.x", "b.x"]
    const ids = tenants.flatMap((tenant) => [
      ...new Set(given.map((id) => published({ tenant, id }).id))
    ])
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("takes its headers along and names those that receivers do not get", () => {
    const { headers, unsent } = published({
      contentType: "text/csv",
      headers: { Traceparent: traceparent, "x-source": "crm" }
    })
    assert.deepStrictEqual(headers.slice(1), [
      ["content-type", "text/csv"],
      ["traceparent", traceparent],
      ["x-source", "crm"]
    ])
    assert.deepStrictEqual(unsent, ["x-source"])
  })

  it.each<[changes: Partial<NewEvent>, field: string, message: RegExp]>([
    [{ tenant: "a.b" }, "tenant", /^"a\.b" must be 1 to 64 letters/],
    [{ type: "a..b" }, "type", /^"a\.\.b" must be one such as invoice\.paid: /],
    [{ type: "invoice.*" }, "type", /^"invoice\.\*" must be one such as invoice\.paid: /],
    [{ type: "petrel.alert.x" }, "type", / belong to Petrel's own events: choose/],
    [{ id: "a b" }, "id", /^"a b" must be 1 to 250 ASCII characters without spaces$/],
    [{ id: "" }, "id", /^"" must be /],
    [{ id: "x".repeat(251) }, "id", /^"x+…" must be 1 to 250 /],
    [{ headers: { "x y": "1" } }, "headers.x y", /^must have a valid name$/],
    [{ headers: { x: "a\r\nNats-TTL: 1" } }, "headers.x", /^must have a value on one line$/],
    [{ headers: { "Nats-TTL": "1s" } }, "headers.nats-ttl", /^is a name that belongs to the br/],
    [{ headers: { "petrel-round": "1" } }, "headers.petrel-round", /^is a name that belongs/],
    [
      { contentType: "a/b", headers: { "Content-Type": "c/d" } },
      "headers.content-type",
      /^was given twice$/
    ],
    [{ contentType: "ü" }, "contentType", /^"ü" must be /],
    [{ headers: { traceparent: "x" } }, "headers.traceparent", /^"x" must be /]
  ])("is refused for %o", (changes, field, message) => {
    const [only, ...others] = problems(changes)
    assert.strictEqual(only?.field, field)
    assert.match(only?.message ?? "", message)
    assert.deepStrictEqual(others, [])
  })
})
