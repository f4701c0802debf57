import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { EndpointPatch, NewEndpoint } from "../../../src/operations/endpoints/endpoint-settings.ts"
import { readInput } from "../../../src/operations/input.ts"

const url = "https://receiver.example/hooks"

describe("the rate of an endpoint", () => {
  for (const [given, rate] of [
    ["20/s burst 40", { perSecond: 20, burst: 40 }],
    ["20/s", { perSecond: 20, burst: 1 }],
    [
      { perSecond: 3, burst: 2 },
      { perSecond: 3, burst: 2 }
    ]
  ] as const)
    it(`may be given as ${JSON.stringify(given)}`, () => {
      assert.deepStrictEqual(
        readInput(NewEndpoint, { url, rate: given }),
        Result.succeed({ url, rate })
      )
      assert.deepStrictEqual(readInput(EndpointPatch, { rate: given }), Result.succeed({ rate }))
    })

  it("is refused in words that show both forms", () => {
    const problem = (rate: unknown) =>
      Result.match(readInput(EndpointPatch, { rate }), {
        onSuccess: () => [],
        onFailure: (problems) => problems.map(({ field, message }) => `${field} ${message}`)
      })
    assert.deepStrictEqual(problem("fast"), [
      "rate \"fast\" must be requests per second, minute or hour such as 20/s, 30/min or '20/s burst 40', from 1/h to 100000/s"
    ])
    assert.deepStrictEqual(problem(5), [
      "rate 5 must be an object with perSecond, burst, or a rate such as '20/s burst 40'"
    ])
  })
})
