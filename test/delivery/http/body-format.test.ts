import { assert, describe, it } from "@effect/vitest"
import { formatted } from "../../../src/delivery/http/sender.ts"

const slack = (body: string): unknown =>
  JSON.parse(Buffer.from(formatted(Buffer.from(body), "slack")).toString("utf8"))

describe("a body for a chat tool", () => {
  it("is the alert in words", () => {
    const data = {
      ...{ state: "cleared", tenant: "acme", id: "alert_1", name: "dead-letters" },
      ...{ about: "endpoint", level: "warn", endpoint: "billing" },
      ...{ threshold: 1, unit: "", windowMs: 1, raisedAt: 1 }
    }
    assert.deepStrictEqual(slack(JSON.stringify({ data })), {
      text: "Petrel: dead-letters of acme/billing is over."
    })
  })

  it("is any other text as it is, with what would be markup escaped", () => {
    assert.deepStrictEqual(slack("<!channel> Ä & <b>"), {
      text: "&lt;!channel&gt; Ä &amp; &lt;b&gt;"
    })
  })
})
