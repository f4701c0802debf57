import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { sideBySide } from "../../../../src/cli/format/screen.ts"
import { disableEndpoint } from "../../../../src/endpoints/endpoint-state.ts"
import { endpoint, history, nth, secret, worker } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const install = installations()

describe("petrel endpoint test", () => {
  it.live("sends one signed event at once, shows the answer, and counts for nothing", () => {
    const place = install()
    const test = (...args: ReadonlyArray<string>) =>
      run("endpoint", "test", "acme/hook", ...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 201, body: "thanks" } })
        yield* endpoint({ url: hook.url, headers: { authorization: "Bearer hidden" } })
        const facts = yield* history
        yield* worker()
        const { code, out } = yield* test()
        const text = out.join("\n")
        assert.strictEqual(code, 0, text)
        assert.match(text, /^REQUEST\nPOST http:/)
        assert.match(text, /petrel-test: true/)
        assert.match(text, /authorization: \*{8}/)
        assert.match(
          text,
          /ANSWER\nstatus 201\nafter .*\n[\s\S]*\n\nthanks\n\nThe receiver took it\.$/
        )
        const { body, headers } = nth(hook.requests, 0)
        new Webhook(secret).verify(String(body), headers as Record<string, string>)
        assert.strictEqual(headers.authorization, "Bearer hidden")
        assert.strictEqual(headers["webhook-event-type"], "petrel.test")

        hook.answer({ status: 404, body: "no route" })
        const failed = yield* test("--type", "invoice.paid", "--body", '{"n":1}', "--json")
        assert.strictEqual(failed.code, 1)
        assert.deepInclude(parse(nth(failed.out, 0)), {
          ...{ tenant: "acme", endpoint: "hook", type: "invoice.paid", body: '{"n":1}' },
          ...{ status: 404, verdict: "retry" }
        })
        assert.match(failed.err.join("\n"), /the test failed\. The path is wrong/)
        assert.strictEqual(String(nth(hook.requests, 1).body), '{"n":1}')
        assert.strictEqual(nth(hook.requests, 1).headers["petrel-test"], "true")
        assert.lengthOf(facts.facts, 0)
        const shown = yield* run("endpoint", "show", "acme/hook", "--json", ...place.flags)
        assert.deepInclude(parse(nth(shown.out, 0)), { inFlight: 0 })
        assert.deepInclude(parse(nth(shown.out, 0)).lastHour as object, { attempts: 0 })
        assert.deepInclude(parse(nth(shown.out, 0)).health as object, { failuresInRow: 0 })
      })
    )
  })

  it.live("reaches an endpoint that is disabled, and says why it reaches none", () => {
    const place = install()
    const test = (...args: ReadonlyArray<string>) =>
      run("endpoint", "test", "acme/hook", ...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const none = yield* test()
        assert.strictEqual(none.code, 1)
        assert.match(none.err.join("\n"), /no worker that owns partition \d+ answers/)
        const bad = yield* test("--type", "no good", "--content-type", "ä")
        assert.match(bad.err.join("\n"), /--type/)
        assert.match(bad.err.join("\n"), /--content-type/)
        yield* worker()
        yield* disableEndpoint({ tenant: "acme", endpoint: "hook" }, "a test", "test")
        assert.strictEqual((yield* test()).code, 0)
        assert.lengthOf(hook.requests, 1)
      })
    )
  })
})

describe("two texts", () => {
  it("stand side by side where the screen is wide, each within its column", () => {
    const lines = sideBySide(["one two", "x".repeat(50)], ["other"], 83)
    assert.strictEqual(nth(lines, 0), `${"one two".padEnd(43)}other`)
    assert.deepStrictEqual(lines.slice(1), ["x".repeat(40), "x".repeat(10)])
  })

  it.each([undefined, 40])("follow each other where it is not (%s)", (width) => {
    assert.deepStrictEqual(sideBySide(["one"], ["other"], width), ["one", "", "other"])
  })
})
