import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const root = join(import.meta.dirname, "../..")

describe("a misspelt option", () => {
  it.each([
    ["bench", "bench/main.ts"],
    ["simulate", "test/simulation/main.ts"],
    ["fuzz", "test/fuzz.ts"]
  ])("of `npm run %s` is one sentence", (name, file) => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [join(root, file), "--larg"], {
      encoding: "utf8"
    })
    assert.deepStrictEqual(
      { status, stderr, stdout },
      {
        status: 2,
        stderr: `${name}: Unknown option '--larg'; --help says what there is.\n`,
        stdout: ""
      }
    )
  })
})
