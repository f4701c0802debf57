import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { EndpointPatch } from "../../src/operations/endpoints/endpoint-settings.ts"
import { readInput } from "../../src/operations/input.ts"
import { NewSource } from "../../src/operations/sources/manage-sources.ts"

const problems = (value: unknown) => Result.getOrThrow(Result.flip(readInput(EndpointPatch, value)))

const sourceProblems = (value: unknown) =>
  Result.getOrThrow(Result.flip(readInput(NewSource, value)))

describe("the input of an operation", () => {
  it.each<[value: unknown, field: string, message: string]>([
    [{ maxInFligt: 5 }, "maxInFligt", "is not a field; did you mean maxInFlight?"],
    [{ circuit: { failure: 3 } }, "circuit.failure", "is not a field; did you mean failures?"],
    [{ circuit: { failures: 0 } }, "circuit.failures", "0 must be between 1 and 10000"],
    [
      { circuit: 5 },
      "circuit",
      "5 must be an object with failures, rate, coolDown, maxCoolDown, successes, onOpen, giveUpAfter, permanentFailures, …"
    ],
    [
      { rate: 5 },
      "rate",
      "5 must be an object with perSecond, burst, or a rate such as '20/s burst 40'"
    ],
    [{ timeout: "soon" }, "timeout", '"soon" must be a length of time such as "30 seconds"'],
    [{ types: [] }, "types", "must not be empty"],
    [
      { types: ["a", "b..c"] },
      "types.1",
      '"b..c" must be event types such as invoice.paid, invoice.> or *.created'
    ],
    [
      { retry: { backoff: { kind: "expo" } } },
      "retry.backoff",
      '{"kind":"expo"} must be an object with a kind: exponential, linear, fixed, list, decorrelated'
    ]
  ])("is refused by field: %j", (value, field, message) => {
    assert.deepInclude(problems(value), { field, message })
  })

  it("is refused for all its problems", () => {
    const fields = problems({ url: "x", sign: "y", redirects: 11 }).map(({ field }) => field)
    assert.sameMembers(fields, ["url", "sign", "redirects"])
  })

  it("suggests the preset that was meant, and names it once", () => {
    const [{ field, message } = { field: "", message: "" }] = problems({ retry: "strip" })
    assert.strictEqual(field, "retry")
    assert.match(message, /^there is no retry preset "strip"; did you mean "stripe"\?/)
  })

  it("does not repeat what may be a credential", () => {
    const said = JSON.stringify([
      ...problems({ headers: { "x-key": "hush\n" } }),
      ...problems({ headers: { host: "hush" } }),
      ...problems({ secret: ["hush"] }),
      ...problems([{ secret: "hush" }]),
      ...problems({ url: "http://user:hush@example.com" }),
      ...sourceProblems({ apiKey: "hush é" }),
      ...sourceProblems({ secrets: "hush" }),
      ...sourceProblems([{ verifyToken: "hush" }])
    ])
    assert.notInclude(said, "hush")
    assert.include(said, "x-key")
  })
})
