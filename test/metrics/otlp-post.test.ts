import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeOtlpPost, otlpUrl, readOtlpHeaders } from "../../src/metrics/otlp-post.ts"
import { makeLog } from "../kit/log.ts"
import { receiver } from "../kit/receiver.ts"

describe("otlpUrl", () => {
  it.each([
    ["http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"],
    ["https://otlp.example/base/", "https://otlp.example/base/v1/metrics"],
    ["http://127.0.0.1:4318/v1/metrics", "http://127.0.0.1:4318/v1/metrics"],
    ["http://127.0.0.1:4318/?token=x", "http://127.0.0.1:4318/v1/metrics?token=x"],
    ["127.0.0.1:4318", undefined],
    ["ftp://127.0.0.1", undefined],
    ["", undefined]
  ])("makes of %j %j", (text, url) => {
    assert.strictEqual(otlpUrl(text, "metrics"), url)
    const traces = url?.replace("/v1/metrics", "/v1/traces")
    assert.strictEqual(otlpUrl(text.replace("metrics", "traces"), "traces"), traces)
  })
})

describe("readOtlpHeaders", () => {
  it.each([
    ["", {}],
    ["api-key=abc", { "api-key": "abc" }],
    [" A=1 , b=Bearer%20x==", { a: "1", b: "Bearer x==" }],
    ["no value", undefined],
    ["a=%zz", undefined]
  ])("reads %j as %j", (text, headers) => {
    assert.deepStrictEqual(readOtlpHeaders(text), headers)
  })
})

describe("makeOtlpPost", () => {
  it.live.each([
    [200, "{}", true],
    [200, '{"partialSuccess":{"rejectedSpans":"2"}}', true],
    [400, "", true],
    [413, "", true],
    [401, "", false],
    [429, "", false],
    [500, "", false]
  ] as const)("says of an answer %d with %j whether it is done with: %j", ([status, body, done]) =>
    Effect.gen(function* () {
      const collector = yield* receiver({ answer: { status, body } })
      const post = makeOtlpPost({
        ...{ url: `${collector.url}/v1/traces`, headers: {} },
        ...{ what: "spans", meanwhile: "they wait", refused: "they are lost" }
      })
      assert.strictEqual(yield* post(() => ({ a: 1 }), 5_000), done)
      assert.strictEqual(String(collector.requests[0]?.body), '{"a":1}')
    })
  )

  it.live(
    "says when spans that waited are lost instead, wholly or in part, and when they wait again",
    () => {
      const log = makeLog()
      return Effect.gen(function* () {
        const collector = yield* receiver({})
        const post = makeOtlpPost({
          ...{ url: `${collector.url}/v1/traces`, headers: {} },
          ...{ what: "spans", meanwhile: "they wait", refused: "they are lost" }
        })
        const rejects = { body: '{"partialSuccess":{"rejectedSpans":"2"}}' }
        for (const answer of [{ status: 503 }, { status: 400 }, rejects, { status: 429 }, {}]) {
          collector.answer(answer)
          yield* post(() => ({}), 5_000)
          yield* post(() => ({}), 5_000)
        }
        assert.deepStrictEqual(
          log.lines.map(({ text }) => text.replace(/ *\{.*/s, "")),
          [
            "spans cannot be pushed; they wait",
            "spans are refused; they are lost",
            "some spans are refused; they are lost",
            "spans cannot be pushed; they wait",
            "spans are pushed again"
          ]
        )
      }).pipe(Effect.provide(log.layer))
    }
  )
})
