import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { planLines } from "../../../src/cli/commands/upgrade.ts"
import { ownLevels } from "../../../src/domain/feature-level.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const place = installations()

describe("petrel upgrade", () => {
  it.live("has nothing to do in a new installation, and says its level", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { code, out } = yield* run("upgrade", ...flags)
        assert.deepStrictEqual(
          [code, ...out],
          [
            0,
            `The installation is at feature level ${ownLevels.newest}, the newest that this version knows: nothing to do.`
          ]
        )
        const asked = yield* run("upgrade", "--json", ...flags)
        assert.deepStrictEqual(parse(asked.out[0] ?? ""), {
          event: "done",
          from: ownLevels.newest,
          to: ownLevels.newest
        })
      })
    )
  })

  it.live("says how to begin where there is no installation", () => {
    const { flags, within } = place()
    return within(
      Effect.gen(function* () {
        const { code, err } = yield* run("upgrade", ...flags)
        assert.strictEqual(code, 1)
        assert.include(err.join("\n"), "run `petrel init` first")
      })
    )
  })

  it("names what is in the way, and that nothing takes it back", () => {
    const [head, ...lines] = planLines({
      from: 1,
      to: 2,
      old: [{ worker: "w1", host: "a", pid: 7 }]
    })
    assert.include(head, "From feature level 1 to 2")
    assert.include(lines.join("\n"), "only a backup brings the former level back")
    assert.include(lines.join("\n"), "The worker w1 (on a, process 7) is older: replace it first.")
  })
})
