import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const examples = join(root, "examples/receiver-by-hand")

/** The code without indentation: a page shows a part of a file. */
const lines = (code: string): string =>
  code
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n")

describe("the page about an inbox by hand", () => {
  const page = readFileSync(join(root, "docs/guide/receiving/by-hand.md"), "utf8")
  const shown = Array.from(
    page.matchAll(/^```(python|php|sql)\n(.*?)^```$/gms),
    ([, , code = ""]) => lines(code)
  )
  const files = globSync(["django/inbox/**/*.py", "laravel/{app,routes}/**/*.php"], {
    cwd: examples
  }).map((file) => lines(readFileSync(join(examples, file), "utf8")))

  it("shows code of the examples, which other tests run", () => {
    assert.isAtLeast(shown.length, 8)
    assert.deepStrictEqual(
      shown.filter((code) => !files.some((file) => file.includes(code))),
      []
    )
  })
})
