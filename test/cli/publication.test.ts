import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { PublishFlags } from "../../src/cli/publication.ts"
import { publication } from "../../src/cli/publication.ts"

const event: PublishFlags = {
  tenant: "acme",
  type: "invoice.paid",
  id: undefined,
  contentType: undefined,
  header: []
}

const read = (flags: Partial<PublishFlags>) => publication({ ...event, ...flags }, "evt_1")
const published = (flags: Partial<PublishFlags>) => Result.getOrThrow(read(flags))
const problems = (flags: Partial<PublishFlags>) => Result.getOrThrow(Result.flip(read(flags)))

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

describe("an event on the command line", () => {
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
      header: [`Traceparent: ${traceparent}`, "x-source: crm"]
    })
    assert.deepStrictEqual(headers.slice(1), [
      ["content-type", "text/csv"],
      ["traceparent", traceparent],
      ["x-source", "crm"]
    ])
    assert.deepStrictEqual(unsent, ["x-source"])
  })

  it.each<[flags: Partial<PublishFlags>, said: RegExp]>([
    [{ tenant: "a.b" }, /^TENANT "a\.b" must be 1 to 64 letters/],
    [{ type: "a..b" }, /^TYPE "a\.\.b" must be one such as invoice\.paid: /],
    [{ type: "invoice.*" }, /^TYPE "invoice\.\*" must be one such as invoice\.paid: /],
    [
      { type: "petrel.alert.x" },
      /^TYPE "petrel\.alert\.x" .* belong to Petrel's own events: choose/
    ],
    [{ id: "a b" }, /^--id "a b" must be 1 to 250 ASCII characters without spaces$/],
    [{ id: "" }, /^--id "" must be /],
    [{ id: "x".repeat(251) }, /^--id "x+" must be 1 to 250 /],
    [{ header: ["x"] }, /^--header "x" must be 'name: value'$/],
    [{ header: ["x: a\r\nNats-TTL: 1"] }, /^--header ".*" must be 'name: value'$/],
    [{ header: ["Nats-TTL: 1s"] }, /^--header "nats-ttl" is a name that belongs to the broker/],
    [{ header: ["petrel-round: 1"] }, /^--header "petrel-round" is a name that belongs/],
    [{ contentType: "a/b", header: ["Content-Type: c/d"] }, /^the header content-type was given/],
    [{ contentType: "ü" }, /^the header content-type "ü" must be /],
    [{ header: ["traceparent: x"] }, /^the header traceparent "x" must be /]
  ])("is refused for %o", (flags, said) => {
    const [only = "", ...others] = problems(flags)
    assert.match(only, said)
    assert.deepStrictEqual(others, [])
  })
})
