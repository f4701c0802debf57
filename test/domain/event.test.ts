import { assert, describe, it } from "@effect/vitest"
import { parseEventSubject, subjectWithId } from "../../src/domain/event.ts"
import { makeNames } from "../../src/domain/names.ts"

const names = makeNames()
const own = "types whose first token is petrel belong to Petrel's own events: choose another"

describe("the subject of an event", () => {
  it.each([
    ["events.acme.invoice.paid", "acme", "invoice.paid"],
    ["events.acme.petrels.seen", "acme", "petrels.seen"],
    ["events.acme.bird.petrel", "acme", "bird.petrel"],
    ["events.petrel.alert.x", "petrel", "alert.x"],
    ["petrel.alert-events.acme.petrel.alert.success-low", "acme", "petrel.alert.success-low"]
  ])("%s is of tenant %s and type %s", (subject, tenant, type) => {
    assert.deepStrictEqual(parseEventSubject(subject, names), { tenant, type })
  })

  it.each([
    ["events.acme.petrel", own],
    ["events.acme.petrel.alert.success-low", own],
    ["events.acme.petrel.invoice", own],
    ["events.acme.petrel.a!", own],
    ["events.acme.a!", `the type's token "a!" must be 1 to 64 letters, digits, - or _`],
    ["petrel.alert-events.acme.invoice.paid", "the type is none of Petrel's own events"],
    ["petrel.alert-events.acme.petrels", "the type is none of Petrel's own events"],
    [
      "petrel.alert-events.acme.petrel.a!",
      `the type's token "a!" must be 1 to 64 letters, digits, - or _`
    ]
  ])("%s names no type that may stand there", (subject, problem) => {
    assert.deepStrictEqual(parseEventSubject(subject, names), { tenant: "acme", problem })
  })

  it("of Petrel's own is believed of an event with an id only", () => {
    const own = parseEventSubject(names.subjects.alertEvent("acme", "petrel.alert.x"), names)
    const other = parseEventSubject("events.acme.invoice.paid", names)
    const withId = (name: string) => (name === "nats-msg-id" ? "acme.1" : undefined)
    assert.strictEqual(subjectWithId(own, withId), own)
    for (const get of [withId, () => undefined])
      assert.strictEqual(subjectWithId(other, get), other)
    assert.deepStrictEqual(
      subjectWithId(own, () => undefined),
      { tenant: "acme", problem: "it has no id, which each event of Petrel's own has" }
    )
  })

  it("knows the roots of another installation", () => {
    const theirs = makeNames("OTHER_", "things")
    const type = "petrel.alert.p99-slow"
    assert.deepStrictEqual(parseEventSubject(theirs.subjects.alertEvent("acme", type), theirs), {
      tenant: "acme",
      type
    })
  })
})
