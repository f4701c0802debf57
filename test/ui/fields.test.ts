import { assert, describe, it } from "@effect/vitest"
import { endpointCommand, withoutSecrets } from "../../ui/command-line.ts"
import { formOf, maskProblems, patchOf, placeProblems, valuesOf } from "../../ui/fields.ts"
import { endpointFields } from "../../ui/generated/forms.ts"

const before = {
  url: "https://example.com/hooks",
  types: ["invoice.*", "order.>"],
  sign: "standard",
  retry: { backoff: { kind: "fixed", delay: "1 minute" } },
  maxInFlight: 10,
  rate: { perSecond: 20, burst: 40 },
  circuit: { state: "open", failures: 5, coolDown: "1 minute", successes: 2 },
  headers: { authorization: "********" },
  forwardHeaders: ["x-a"],
  metadata: { customer: "42", region: "eu" },
  contact: "ops@example.com",
  adapt: true
}
const form = formOf(endpointFields, before)
const changed = (typed: Record<string, string>) =>
  patchOf(endpointFields, form, { ...form, ...typed })

describe("a form of settings", () => {
  it("makes no change of what is as it was", () => {
    assert.deepStrictEqual(changed({}), {})
    assert.deepStrictEqual(changed({ types: "invoice.*,order.>", maxInFlight: " 10 " }), {})
  })

  it("shows a part at its default as empty, and sends it for no other part", () => {
    assert.strictEqual(form["circuit.failures"], "")
    assert.strictEqual(form["circuit.coolDown"], "1 minute")
    assert.deepStrictEqual(changed({ "circuit.failures": "9" }), {
      circuit: { failures: 9, coolDown: "1 minute" }
    })
  })

  it("takes settings back as each is taken back", () => {
    assert.deepStrictEqual(
      changed({
        ...{ rate: "", contact: "", adapt: "", retry: "", maxInFlight: "" },
        ...{ "circuit.coolDown": "", metadata: "customer=42", headers: "", forwardHeaders: "" }
      }),
      {
        ...{ retry: "default", maxInFlight: 10, adapt: false, rate: null, circuit: {} },
        ...{ headers: { authorization: null }, forwardHeaders: { "x-a": null }, contact: null },
        metadata: { region: null }
      }
    )
  })

  it("sends numbers, lists, entries, words and JSON as what they are", () => {
    assert.deepStrictEqual(
      valuesOf(endpointFields, {
        ...{ types: "a.*, b", maxInFlight: "7", rate: "5/s", metadata: "a=b=c\n\nd=1" },
        ...{ retryFor: 'a.>=stripe\nb={"jitter":"none"}', "headerNames.id": "x-id" },
        ...{ "alerts.off": "on", forwardHeaders: "x-a" }
      }),
      {
        ...{ types: ["a.*", "b"], maxInFlight: 7, rate: "5/s", metadata: { a: "b=c", d: "1" } },
        ...{ retryFor: { "a.>": "stripe", b: { jitter: "none" } }, headerNames: { id: "x-id" } },
        ...{ alerts: "off", forwardHeaders: { "x-a": true } }
      }
    )
    // What is no number is for the console to refuse, at its field.
    assert.deepStrictEqual(valuesOf(endpointFields, { maxInFlight: "many" }), {
      maxInFlight: "many"
    })
  })

  it("says what is wrong at the field that it is about", () => {
    const { other, placed } = placeProblems(endpointFields, [
      { field: "maxInFlight", message: "must be at most 1000" },
      { field: "circuit.failures", message: "must be a number" },
      { field: "metadata.a", message: "is too long" },
      { field: "types.0", message: "must be event types" },
      { field: "", message: "of another kind" }
    ])
    assert.deepStrictEqual(placed, {
      maxInFlight: "must be at most 1000",
      "circuit.failures": "must be a number",
      metadata: "a is too long",
      types: "0 must be event types"
    })
    assert.deepStrictEqual(other, ["of another kind"])
    // A value that nobody sees cannot move to another name.
    const moved = changed({ headers: "x-key=********" })
    assert.deepStrictEqual(
      maskProblems(moved).map(({ field }) => field),
      ["headers"]
    )
    assert.deepStrictEqual(maskProblems(changed({ headers: "authorization=new" })), [])
  })

  it("is a command without what is secret", () => {
    const patch = { headers: { "x-key": "abc", old: null }, secret: "whsec_abc", maxInFlight: 5 }
    const text = endpointCommand("set", "acme/billing", endpointFields, patch)
    assert.strictEqual(
      text,
      "petrel endpoint set acme/billing --max-in-flight 5 --header-file FILE --no-header old --secret -"
    )
    const request = JSON.stringify(withoutSecrets(endpointFields, patch))
    assert.notInclude(request, "abc")
    assert.include(request, '"old":null')
  })
})
