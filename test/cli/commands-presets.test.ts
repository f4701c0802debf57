import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { nth } from "../kit/engine.ts"
import { parse } from "./command-line.ts"
import { run } from "./in-process.ts"

describe("petrel presets", () => {
  it.live("shows each policy, as JSON one that --retry takes", () =>
    Effect.gen(function* () {
      const [text, json, unknown] = yield* Effect.all([
        run("presets", "twilio"),
        run("presets", "--json"),
        run("presets", "twillio")
      ])
      assert.deepStrictEqual(text.out, [
        "twilio",
        "  source    guide 1: a single retry, ~15 s, 15 s; ours: delay, jitter",
        "  attempts  at most 2 within 15 s",
        "  time-out  15 s",
        "  waits     5 s (jitter: equal)",
        "  in all    5 s"
      ])
      const twilio = json.out.map((line) => parse(line)).find(({ name }) => name === "twilio")
      assert.deepStrictEqual(twilio?.policy, {
        backoff: { kind: "fixed", delay: "5 seconds" },
        jitter: "equal",
        maxAttempts: 2,
        window: "15 seconds",
        retryAfterCap: "1 day",
        timeout: "15 seconds",
        statuses: { "404": "fail", "425": "fail" }
      })
      assert.strictEqual(unknown.code, 1)
      assert.match(nth(unknown.err, 0), /"twillio"; did you mean "twilio"\?/)
    })
  )
})
