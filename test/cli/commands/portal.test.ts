import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { installations } from "../command-line.ts"
import { run } from "../in-process.ts"

const place = installations()

describe("petrel portal link", () => {
  it.live("says for how long the link opens, and how long it may last", () => {
    const { flags, run: installed } = place()
    const link = (lasts: string) => run("portal", "link", "acme", "--for", lasts, ...flags)
    return installed(
      Effect.gen(function* () {
        for (const [lasts, opens] of [
          ["90s", "1 min 30 s"],
          ["8h", "1 h"]
        ] as const) {
          const { code, err, out } = yield* link(lasts)
          assert.strictEqual(code, 0, err.join())
          assert.match(out.join(), /\/ui\/login#ptl_/)
          assert.include(err.join(), `in once, within ${opens}, and is a secret`)
        }
        for (const lasts of ["10s", "2d"]) {
          const { code, err } = yield* link(lasts)
          assert.strictEqual(code, 2)
          assert.match(err.join(), /--for \d+ [sd] must be between 1 min and 1 d$/)
        }
      })
    )
  })

  it.live("says that it leads to this machine, unless the console's address is given", () => {
    const { flags, run: installed } = place()
    const link = (...args: ReadonlyArray<string>) =>
      run("portal", "link", "acme", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const local = yield* link()
        assert.match(local.out.join(), /^http:\/\/127\.0\.0\.1:4280\/ui\/login#/)
        assert.match(local.err.join(), /a console on this machine: .* give it with --console/)
        const other = yield* link("--console", "https://petrel.example/")
        assert.match(other.out.join(), /^https:\/\/petrel\.example\/ui\/login#/)
        assert.notInclude(other.err.join(), "this machine")
      })
    )
  })
})
