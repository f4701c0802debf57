import { assert, describe, it } from "@effect/vitest"
import { parseEventSubject } from "../../src/domain/event.ts"
import type { IncomingEvent } from "../../src/domain/intake.ts"
import {
  decodeType,
  encodeType,
  idOfBody,
  idToken,
  incomingMessage,
  incomingProblem
} from "../../src/domain/intake.ts"
import { makeNames } from "../../src/domain/names.ts"

const names = makeNames()

const odd = [
  ...["evt_1PX", "a.b", "a/b", "*", ">", "a b", "%2E", "=abc", "_x2F_", "_x_", "a_x2Fb", "-", "_"],
  ...["ä€😀", "a\tb", "a\nb", "\u0000", "..", ".", "a..b", "_x5F_x2F_", "__x2F__", "~!'()", "$KV"]
]

const event: IncomingEvent = {
  tenant: "acme",
  source: "stripe",
  id: "evt_1",
  type: "invoice.paid",
  body: Buffer.from("{}")
}

describe("an id as a token of a subject", () => {
  it.each(odd)("stands for %j alone", (id) => {
    const token = idToken(id)
    assert.match(token, /^[A-Za-z0-9_%-]+$/)
    assert.strictEqual(decodeURIComponent(token), id)
  })

  it("is a hash where it would be too long, and differs from each id that looks so", () => {
    const [one, other] = [idToken(`${"x".repeat(300)}1`), idToken(`${"x".repeat(300)}2`)]
    assert.match(one, /^=[0-9a-f]{64}$/)
    assert.notStrictEqual(one, other)
    assert.notStrictEqual(idToken(one), one)
    assert.isBelow(idToken("ä".repeat(60)).length, 70)
  })

  it("of a body is equal for equal bytes", () => {
    assert.strictEqual(idOfBody(Buffer.from("a")), idOfBody(Buffer.from("a")))
    assert.notStrictEqual(idOfBody(Buffer.from("a")), idOfBody(Buffer.from("b")))
  })
})

describe("a provider's type as an event's type", () => {
  it.each(odd.map((type) => [type]))("stands for %j alone", (type) => {
    const encoded = encodeType(type)
    assert.isTrue("type" in parseEventSubject(`events.acme.stripe.${encoded}`, names), encoded)
    assert.strictEqual(decodeType(encoded), type)
  })

  it("stays as it is where it can", () => {
    for (const type of ["invoice.paid", "pull_request.opened", "a-b", "PAYMENT.CAPTURE.x"])
      assert.strictEqual(encodeType(type), type)
    assert.strictEqual(encodeType("orders/create"), "orders_x2F_create")
    assert.strictEqual(encodeType("Push Hook"), "Push_x20_Hook")
  })

  it("is cut where it is too long, and still differs from others", () => {
    const long = (end: string) => `a.${"b".repeat(80)}${end}`
    assert.notStrictEqual(encodeType(long("1")), encodeType(long("2")))
    const many = Array.from({ length: 60 }, (_, n) => `token${n}`).join(".")
    for (const type of [long("1"), many, `${many}.x`])
      assert.isTrue("type" in parseEventSubject(`events.a.b.${encodeType(type, 190)}`, names))
    assert.notStrictEqual(encodeType(many, 190), encodeType(`${many}.x`, 190))
  })
})

describe("an event that comes in", () => {
  it("has its source before its type, and its id where the broker looks for repeats", () => {
    const { headers, sameId, subject } = incomingMessage({ ...event, id: "a.b" }, names)
    assert.strictEqual(subject, "petrel.intake.sources.acme.stripe.a%2Eb.invoice.paid")
    assert.strictEqual(sameId, "petrel.intake.sources.acme.stripe.a%2Eb.>")
    assert.strictEqual(names.subjects.eventOfIncoming(subject), "events.acme.stripe.invoice.paid")
    assert.deepStrictEqual(headers, [["petrel-event-id", "acme.stripe.a.b"]])
    assert.strictEqual(names.streamOf(subject), names.intake)
  })

  it("of an outbox has the row's type", () => {
    const { subject } = incomingMessage({ ...event, source: "outbox" }, names)
    assert.strictEqual(subject, "petrel.intake.outbox.acme.evt_1.invoice.paid")
    assert.strictEqual(names.subjects.eventOfIncoming(subject), "events.acme.invoice.paid")
  })

  it("keeps the provider's type where the subject has another", () => {
    const { headers } = incomingMessage({ ...event, type: "orders/create" }, names)
    assert.deepInclude(headers, ["petrel-source-type", "orders%2Fcreate"])
  })

  it("has an id for receivers that any header takes", () => {
    const idOf = (id: string) => incomingMessage({ ...event, id }, names).headers[0]?.[1] ?? ""
    assert.strictEqual(idOf("a b"), "acme.stripe.a%20b")
    assert.match(idOf("x".repeat(400)), /^acme\.stripe\.=[0-9a-f]{64}$/)
    for (const id of odd) assert.match(idOf(id), /^[\x21-\x7e]{1,255}$/)
  })

  it.each([
    [{ tenant: "a.b" }, "the tenant must be"],
    [{ id: "" }, "the id is empty"],
    [{ source: "petrel" }, "must not be petrel"],
    [{ source: "a b" }, "the source's name must be"],
    [{ source: "outbox", type: "orders/create" }, `the type's token "orders/create"`]
  ])("is refused with %j", (changes, text) => {
    assert.include(incomingProblem({ ...event, ...changes }), text)
    assert.isUndefined(incomingProblem(event))
  })
})
