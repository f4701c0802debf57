import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, vi } from "vitest"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const install = installations()

const hourMs = 3_600_000

describe("petrel token create", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it.live.each([-48, 48])("makes a token of an hour by a clock that is %i h off", (hours) => {
    const place = install()
    return place.run(
      Effect.gen(function* () {
        const trueNow = Date.now.bind(Date)
        const startedAt = trueNow()
        vi.spyOn(Date, "now").mockImplementation(() => trueNow() + hours * hourMs)
        const flags = [...place.flags, "--scope", "all", "--expires", "1h", "--json"]
        const { code, err, out } = yield* run("token", "create", "acme", ...flags)
        vi.restoreAllMocks()
        assert.strictEqual(code, 0, err.join("\n"))
        const { expiresAt } = parse(out[0] ?? "") as { readonly expiresAt: string }
        const offMs = Date.parse(expiresAt) - startedAt - hourMs
        assert.isBelow(Math.abs(offMs), 60_000)
      })
    )
  })
})
