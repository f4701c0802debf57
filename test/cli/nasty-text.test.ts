import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { visible, visibleInColours } from "../../src/cli/format/visible.ts"
import { forTerminal } from "../../src/cli/terminal/logging.ts"
import { readDeadLetters } from "../../src/history/dead-letters.ts"
import { endpoint, history, nth, publish, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { installations, parse } from "./command-line.ts"
import { run } from "./in-process.ts"

const place = installations()

/** What a terminal obeys, from C0 and C1, what turns text around, and a line of one's own. */
const nasty = "\u001b[2J\u0007\u009b31m\u0090q\u202egpj.exe\u2066\u200f\u007f\r\u2028"
/** What an endpoint's settings may have of it: no control characters. */
const turning = nasty.replace(/\p{Cc}/gu, "")
const obeyed = /(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\u2028]/u

describe("text from outside", () => {
  it.live("is never obeyed by the terminal, as text and as JSON", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const to = yield* receiver({ answer: { status: 400, body: `no ${nasty}!` } })
        const facts = yield* history
        yield* endpoint({
          url: `${to.url}/${turning}`,
          contact: "ops \u202egro.live\u200f",
          retry: quickRetry({ maxAttempts: 1 })
        })
        yield* worker()
        yield* publish("thing.happened", `{"a":"${nasty}"}`, { "Nats-Msg-Id": "acme.42" })
        yield* facts.count("dead-lettered", 1)
        const { id } = nth(yield* Stream.runCollect(readDeadLetters({})), 0)
        for (const command of [
          ["history"],
          ["history", "export"],
          ["history", "export", "--format", "csv"],
          ["endpoint", "show", "acme/hook"],
          ["endpoint", "list"],
          ["dead", "show", String(id)],
          ["delivery", "show", "acme.42.hook"]
        ])
          for (const json of command.includes("export") ? [[]] : [[], ["--json"]]) {
            const { code, err, out } = yield* run(...command, ...json, ...flags)
            const said = [...out, ...err].join("\n")
            assert.strictEqual(code, 0, said)
            assert.notMatch(said, obeyed, command.join(" "))
            if (json.length > 0) assert.isAbove(out.map((line) => parse(line)).length, 0)
          }
        const shown = yield* run("endpoint", "show", "acme/hook", "--json", ...flags)
        // Nothing is lost: what reads the JSON gets what was stored.
        assert.strictEqual(parse(nth(shown.out, 0)).url, `${to.url}/${turning}`)
        assert.include(nth(shown.out, 0), "\\u202egpj.exe")
      })
    )
  })

  it("stands in the log as it may be read, and keeps its lines", () => {
    const message = `one\ntwo\\u0007 ${nasty}`
    const line = JSON.stringify({ msg: message })
    assert.deepStrictEqual(JSON.parse(visible(line)), { msg: message })
    const read = parse(forTerminal(line)).msg
    assert.notMatch(String(read), obeyed)
    assert.include(String(read), "one\ntwo\\u0007 \\u001b[2J\\u0007\\u009b31m")
  })

  it("leaves the colours of results where there are any, and what languages need", () => {
    const painted = "\u001b[31mred\u001b[39m"
    assert.strictEqual(visibleInColours(`${painted}\u001b[8m`), `${painted}\\u001b[8m`)
    assert.strictEqual(visible(painted), "\\u001b[31mred\\u001b[39m")
    assert.strictEqual(visible("می‌خواهم 👩‍🚀\tå\n"), "می‌خواهم 👩‍🚀\tå\n")
    assert.strictEqual(visible("\u{e0041}"), "\\udb40\\udc41")
  })

  it.live("in a wrong invocation is not obeyed either", () =>
    Effect.gen(function* () {
      for (const args of [[nasty], ["presets", "--nats", `${nasty}:x@`], ["presets", nasty]]) {
        const { code, err } = yield* run(...args)
        assert.strictEqual(code, 2)
        assert.notMatch(err.join("\n"), obeyed)
      }
    })
  )
})
