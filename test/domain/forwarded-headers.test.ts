import { assert, describe, it } from "@effect/vitest"
import { deliveryHeaders, parseDelivery } from "../../src/domain/delivery.ts"
import {
  correlationOf,
  forwardedOf,
  forwardNameProblem,
  maxForwardedLength,
  withForwarded
} from "../../src/domain/header-names.ts"
import { deliveryOf } from "../delivery/made-deliveries.ts"

const headers = (of: Readonly<Record<string, string>>) => (name: string) => of[name]

describe("a header to forward", () => {
  it.each(["x-correlation-id", "X-Request-Id", "authorization", "accept-language"])(
    "may be %s",
    (name) => {
      assert.isUndefined(forwardNameProblem(name))
    }
  )

  it.each([
    ...["content-type", "Host", "traceparent", "webhook-id", "petrel-attempt", "User-Agent"],
    ...["x-hub-signature-256", "X-GitHub-Event", "Nats-Msg-Id", "nats-rollup"]
  ])("is not %s, which is set by others", (name) => {
    assert.match(forwardNameProblem(name) ?? "", /sets itself$|is a header of NATS/)
  })

  it.each(["", "a b", "a:b", "ä"])("is not %j", (name) => {
    assert.strictEqual(forwardNameProblem(name), "must be a valid header name such as x-tenant")
  })
})

describe("the headers of an event", () => {
  it("are found in the order of the names, and nothing where there are none", () => {
    const get = headers({ "x-b": "2", "x-a": "1", "x-c": "3" })
    assert.deepStrictEqual(forwardedOf(get, ["x-a", "x-none", "x-b"]), ["x-a", "1", "x-b", "2"])
    assert.isUndefined(forwardedOf(get, ["x-none"]))
  })

  it("are dropped where no HTTP header may have the value", () => {
    const dropped: Array<string> = []
    const get = headers({
      "x-line": "a\nb",
      "x-wide": "€",
      "x-long": "a".repeat(maxForwardedLength + 1),
      "x-ok": "grün"
    })
    const names = ["x-line", "x-wide", "x-long", "x-ok"]
    assert.deepStrictEqual(
      forwardedOf(get, names, (name) => dropped.push(name)),
      ["x-ok", "grün"]
    )
    assert.deepStrictEqual(dropped, ["x-line", "x-wide", "x-long"])
  })

  it("survive a hop, and cannot come from a publisher as Petrel's own header", () => {
    const content = { contentType: "text/plain", forwarded: ["x-a", 'say "hi", ü'] }
    const sent = new Map(deliveryHeaders(deliveryOf({ content }), "id"))
    const get = (name: string) => sent.get(name)
    assert.deepStrictEqual(parseDelivery("d.0.acme.hook", get)?.content, content)
    const without = new Map(deliveryHeaders(deliveryOf(), "id"))
    assert.isFalse([...without.keys()].some((name) => name.startsWith("petrel-forward")))
    without.set("petrel-forwarded", "no list")
    assert.deepStrictEqual(parseDelivery("d.0.acme.hook", (name) => without.get(name))?.content, {})
  })

  it("go to the endpoints that name them, after their own headers", () => {
    const forwarded = ["x-a", "1", "x-b", "2"]
    assert.deepStrictEqual(withForwarded(["k", "v"], forwarded, new Set(["x-b", "x-c"])), [
      ...["k", "v"],
      ...["x-b", "2"]
    ])
  })

  it("give facts the first value, shortened", () => {
    assert.strictEqual(correlationOf(["x-a", "1", "x-b", "2"]), "1")
    assert.strictEqual(correlationOf(["x-a", "a".repeat(1_000)])?.length, 256)
    assert.isUndefined(correlationOf(undefined))
  })
})
