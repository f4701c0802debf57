import { assert, describe, it } from "@effect/vitest"
import { headers } from "@nats-io/transport-node"
import { isCopyOf } from "../../../src/broker/sources/comparison.ts"
import { makeNames } from "../../../src/domain/names.ts"

interface Told {
  readonly subject?: string
  readonly id?: string
  /** The id of what came in from outside. */
  readonly incoming?: string
  readonly body?: string
  /** When it was stored, ms. */
  readonly at?: number
}

const message = ({ at = 1_000, body = "{}", id, incoming, subject = "events.acme.a" }: Told) => {
  const header = headers()
  if (id !== undefined) header.set("Nats-Msg-Id", id)
  if (incoming !== undefined) header.set("petrel-event-id", incoming)
  return { subject, header, data: Buffer.from(body), time: new Date(at) }
}

const alone = { copiedAs: (subject: string) => subject, skewMs: 0, windowMs: 600_000 }

describe("a message of a source", () => {
  const cases: ReadonlyArray<
    readonly [name: string, original: Told, copy: Told, expected: boolean, skewMs?: number]
  > = [
    ["is the one that was copied later", {}, { at: 1_005 }, true],
    ["is it within the same ms", {}, {}, true],
    ["is another with another subject", { subject: "events.acme.b" }, {}, false],
    ["is another with another body", { body: "1" }, { body: "2" }, false],
    ["is another with another id", { id: "1" }, { id: "2" }, false],
    ["is another with an id where the copy has none", { id: "1" }, {}, false],
    ["is another, though equal, where it was stored after the copy", { at: 1_001 }, {}, false],
    ["may be it where clocks differ", { at: 1_001 }, {}, true, 1_000],
    ["is another where clocks do not differ by so much", { at: 2_001 }, {}, false, 1_000],
    ["is it, published again, with an id", { id: "1", at: 600_000 }, { id: "1" }, true],
    [
      "is another with the same id after the time of duplicates",
      { id: "1", at: 601_001 },
      { id: "1" },
      false
    ],
    ["is another incoming event", { incoming: "1" }, { incoming: "2" }, false],
    ["is it, whenever it came in again", { incoming: "1", at: 1e9 }, { incoming: "1" }, true]
  ]
  for (const [name, original, copy, expected, skewMs = 0] of cases)
    it(name, () => {
      const tolerance = { ...alone, skewMs }
      assert.strictEqual(isCopyOf(message(original), message(copy), tolerance), expected)
    })

  it("is known by the subject under which it is copied", () => {
    const original = message({ subject: "petrel.intake.outbox.acme.1.a" })
    const { eventOfIncoming } = makeNames().subjects
    const isCopy = (subject: string) =>
      isCopyOf(original, message({ subject }), { ...alone, copiedAs: eventOfIncoming })
    assert.isTrue(isCopy("events.acme.a"))
    assert.isFalse(isCopy("events.acme.b"))
  })
})
