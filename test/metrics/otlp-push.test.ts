import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope } from "effect"
import { gauge } from "../../src/metrics/family.ts"
import type { OtlpOptions } from "../../src/metrics/otlp-post.ts"
import { otlpUrl, pushOtlp } from "../../src/metrics/otlp-post.ts"
import { eventually } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import type { Answer } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"

const options = (url: string, changes: Partial<OtlpOptions> = {}): OtlpOptions => ({
  url: otlpUrl(url, "metrics") ?? "",
  ...{ headers: { "x-key": "k" }, resource: { "service.name": "s" }, version: "1", startedAt: 1 },
  ...{ every: 10, timeoutMs: 200, families: () => [gauge("a", "A.", 1)] },
  ...changes
})

/** Logged texts about pushes, in order. */
const pushLines = ({ lines }: ReturnType<typeof makeLog>) =>
  lines.map(({ text }) => text).filter((text) => /pushed|refused/.test(text))

const failing = "metrics cannot be pushed; delivering goes on"
const working = "metrics are pushed again"

const logged = (log: ReturnType<typeof makeLog>, count: number) =>
  eventually(
    Effect.sync(() => pushLines(log)),
    ({ length }) => length >= count
  )

describe("pushOtlp", () => {
  it.live("POSTs JSON at an interval, and once more when it ends", () =>
    Effect.gen(function* () {
      const collector = yield* receiver({ answer: { body: "{}" } })
      const scope = yield* Scope.make()
      yield* Scope.provide(pushOtlp(options(collector.url)), scope)
      yield* collector.received(3)
      const [first] = collector.requests
      assert.deepInclude(first, { method: "POST", path: "/v1/metrics" })
      assert.deepInclude(first?.headers, { "content-type": "application/json", "x-key": "k" })
      const { resourceMetrics } = JSON.parse(String(first?.body))
      assert.strictEqual(resourceMetrics[0].scopeMetrics[0].metrics[0].name, "a")
      const before = collector.requests.length
      yield* Scope.close(scope, Exit.void)
      const after = collector.requests.length
      assert.isAbove(after, before)
    })
  )

  const refused = "some metrics are refused; delivering goes on"
  const problems: ReadonlyArray<readonly [what: string, answer: Answer, said: string]> = [
    ["answers 500", { status: 500, body: "x".repeat(100_000) }, failing],
    ["rejects values", { body: '{"partialSuccess":{"rejectedDataPoints":"5"}}' }, refused],
    ["redirects", { status: 302, headers: { location: "http://127.0.0.1:9/" } }, failing]
  ]
  it.live.each(problems)(
    "says once that an endpoint %s, however often, and once that it is over",
    ([, bad, said]) => {
      const log = makeLog()
      return Effect.gen(function* () {
        const collector = yield* receiver({ answer: bad })
        yield* pushOtlp(options(collector.url))
        yield* collector.received(10)
        collector.answer({ body: "{}" })
        yield* logged(log, 2)
        const lines = pushLines(log)
        assert.lengthOf(lines, 2)
        assert.include(lines[0], said)
        assert.include(lines[1], working)
      }).pipe(Effect.provide(log.layer))
    }
  )

  it.live("has one export under way at a time, with an endpoint that does not answer", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const open = yield* Deferred.make<void>()
      const slow = yield* receiver({
        answer: () => Effect.runPromise(Effect.as(Deferred.await(open), {}))
      })
      let under = 0
      yield* pushOtlp(
        options(slow.url, {
          timeoutMs: 50,
          families: () => {
            under++
            return []
          }
        })
      )
      yield* slow.received(3)
      assert.isAtMost(under, slow.requests.length + 1)
      yield* Deferred.succeed(open, undefined)
      yield* logged(log, 2)
      assert.lengthOf(pushLines(log), 2)
    }).pipe(Effect.provide(log.layer))
  })

  it.live("goes on where nothing listens", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      let asked = 0
      const families = () => {
        asked++
        return []
      }
      yield* pushOtlp(options("http://127.0.0.1:9", { families }))
      yield* eventually(
        Effect.sync(() => asked),
        (count) => count > 5
      )
      assert.lengthOf(pushLines(log), 1)
    }).pipe(Effect.provide(log.layer))
  })
})
