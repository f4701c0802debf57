import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { outlineLines, outlineSvg, scaleOf } from "../../../src/cli/format/outline.ts"
import { outlined } from "../../../src/operations/endpoints/outlined-policy.ts"
import { presetNames, resolveRetry } from "../../../src/policy/presets.ts"
import { endpoint, nth, quickRetry } from "../../kit/engine.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const install = installations()

const presetOf = (name: string) => outlined(name, Result.getOrThrow(resolveRetry(name)))

describe("the drawing of a policy", () => {
  it.each(presetNames)("has a line for each wait, and fits its screen (%s)", (name) => {
    const outline = presetOf(name)
    for (const width of [120, 80, 40]) {
      const lines = outlineLines(outline, width)
      const bars = lines.filter((line) => line.includes("█"))
      assert.lengthOf(bars, outline.waits.length)
      if (width >= 100) for (const line of bars) assert.isAtMost(line.length, width, line)
      assert.match(lines.join("\n"), /\n {2}gives up /)
    }
  })

  it("shades what jitter draws, and nothing else", () => {
    const [, , first = ""] = outlineLines(presetOf("default"), 100)
    assert.match(first, /^ {2}wait 1 {3}30 s to 1 min +█+░+ +#2 after 30 s to 1 min$/)
    const none = outlined("x", { ...Result.getOrThrow(resolveRetry("default")), jitter: "none" })
    assert.notInclude(outlineLines(none, 100).join(""), "░")
  })

  it("is a picture, too, in which names are escaped", () => {
    const policy = Result.getOrThrow(resolveRetry("default"))
    const svg = outlineSvg([outlined("a<b>&c", policy), presetOf("slack")])
    assert.match(svg, /^<svg [^>]*>\n<title>Retry policy: a&lt;b&gt;&amp;c/)
    assert.strictEqual(svg.split("<rect").length - 1, 1 + 2 * (15 + 3))
  })
})

describe("the scale", () => {
  it("rises, within 0 and 1, and has ticks where lengths are", () => {
    const { at, ticks } = scaleOf([500, 3_600_000])
    assert.isBelow(at(1_000), at(60_000))
    assert.strictEqual(at(3_600_000), 1)
    assert.isAtLeast(at(1), 0)
    assert.deepStrictEqual(
      ticks.map(({ text }) => text),
      ["1 s", "10 s", "1 min", "10 min", "1 h"]
    )
  })
})

describe("petrel presets and endpoint show --retry", () => {
  it.live("draw one policy, or say what is wrong with it", () =>
    Effect.gen(function* () {
      const drawn = yield* run("presets", "slack")
      assert.match(drawn.out.join("\n"), /gives up when 4 attempts have failed: after 14 min to 28/)
      const json = parse(nth((yield* run("presets", "slack", "--json")).out, 0))
      assert.deepInclude(json.outline as object, { maxAttempts: 4, endedBy: "attempts" })
      const own = yield* run("presets", JSON.stringify(quickRetry()))
      assert.match(nth(own.out, 0), /^a policy of its own \(jitter: none\)/)
      const said = (...args: ReadonlyArray<string>) =>
        Effect.map(run("presets", ...args), ({ err }) => err.join(" "))
      assert.match(yield* said("slac"), /did you mean "slack"\?/)
      assert.match(yield* said('{"backoff":1}'), /backoff 1 must be an object with a kind/)
      assert.match(yield* said("--svg", "x.svg"), /--svg draws one policy/)
      assert.match(yield* said("slack", "--svg", "/none/x.svg"), /cannot write \/none\/x\.svg/)
    })
  )

  it.live("draw each policy of an endpoint", () => {
    const place = install()
    return place.run(
      Effect.gen(function* () {
        yield* endpoint({ retry: "slack", retryFor: { "invoice.>": "stripe" } })
        const { out } = yield* run("endpoint", "show", "acme/hook", "--retry", ...place.flags)
        const text = out.join("\n")
        assert.match(text, /^slack \(jitter: equal\)\n/)
        assert.match(text, /\n\ninvoice\.>: stripe \(jitter: equal\)\n/)
      })
    )
  })
})
