import { assert, describe, it } from "@effect/vitest"
import { hubspotKind } from "../../src/providers/hubspot.ts"
import { saysTheSame } from "../../src/providers/kind.ts"
import { linearKind } from "../../src/providers/linear.ts"
import { mailgunKind } from "../../src/providers/mailgun.ts"
import { paddleKind } from "../../src/providers/paddle.ts"
import { stripe, stripeKind } from "../../src/providers/stripe.ts"

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

describe("two bodies with the same id", () => {
  it.each([
    [stripeKind.varying, { pending_webhooks: 2 }, { pending_webhooks: 1 }],
    [hubspotKind.varying, { attemptNumber: 0 }, { attemptNumber: 1 }],
    [mailgunKind.varying, { signature: { token: "a" } }, { signature: { token: "b" } }],
    [paddleKind.varying, { notification_id: "ntf_1" }, { notification_id: "ntf_2" }],
    [linearKind.varying, { webhookTimestamp: 1 }, { webhookTimestamp: 2 }]
  ] as const)("are one event where they differ in %s only", (varying = [], one, other) => {
    const same = (a: object, b: object) => saysTheSame(bytes(a), bytes(b), varying)
    assert.isTrue(same({ id: 1, of: { a: [1] }, ...one }, { of: { a: [1] }, id: 1, ...other }))
    assert.isFalse(same({ id: 1, ...one }, { id: 2, ...one }))
    assert.isFalse(same({ id: 1, ...one }, { id: 1, more: 0, ...other }))
  })

  it("are two where one is no JSON object", () => {
    for (const [one, other] of [
      ["[]", "[]"],
      ["{", "{"],
      ["{}", "[]"],
      ["null", "{}"]
    ] as const)
      assert.isFalse(saysTheSame(Buffer.from(one), Buffer.from(other), ["a"]))
    const provider = stripe({ secrets: ["whsec_a"] })
    assert.isTrue(provider.isRepeat?.(bytes({ pending_webhooks: 1 }), bytes({})))
  })
})
