import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { nth } from "../../kit/engine.ts"
import { parse } from "../command-line.ts"
import { run } from "../in-process.ts"

describe("petrel presets", () => {
  it.live("shows each policy, as JSON one that --retry takes", () =>
    Effect.gen(function* () {
      const [text, json, unknown] = yield* Effect.all([
        run("presets", "twilio"),
        run("presets", "--json"),
        run("presets", "twillio")
      ])
      const usual = yield* run("presets", "default")
      assert.include(
        usual.out,
        "  404       at most 5 attempts within 6 h; waits 24 min, 48 min, 1 h 36 min, 3 h 12 min; alert at 3 in a row"
      )
      assert.deepStrictEqual(text.out, [
        "twilio",
        "  source    guide 1: a single retry, ~15 s, 15 s; ours: delay, jitter, a window that is longer than a time-out",
        "  attempts  at most 2 within 1 min",
        "  time-out  15 s",
        "  waits     5 s (jitter: equal)",
        "  in all    5 s",
        "  beware    it gives up after 1 min: if the receiver is down for longer, its events become dead letters",
        "",
        `${" ".repeat(40)}1 s`,
        `  wait 1  2.5 s to 5 s  ${"█".repeat(37)}${"░".repeat(16)}  #2 after 2.5 s to 5 s`,
        "  gives up when 2 attempts have failed: after 2.5 s to 5 s",
        "",
        "guide 1: Webhook Retry Patterns That Actually Work in Production, Recuro"
      ])
      const twilio = json.out.map((line) => parse(line)).find(({ name }) => name === "twilio")
      assert.deepStrictEqual(twilio?.policy, {
        backoff: { kind: "fixed", delay: "5 seconds" },
        jitter: "equal",
        maxAttempts: 2,
        window: "1 minute",
        retryAfterCap: "1 day",
        timeout: "15 seconds",
        statuses: { "404": "fail", "425": "fail" }
      })
      assert.match(String(twilio?.caution), /^gives up after 1 min/)
      assert.strictEqual(unknown.code, 2)
      assert.match(nth(unknown.err, 0), /"twillio"; did you mean "twilio"\?/)
    })
  )
})
