import { assert, describe, it } from "@effect/vitest"
import { shellCommand } from "../../../../src/cli/commands/dev/welcome.ts"

describe("the commands that petrel dev names", () => {
  it("begin with npx, unless petrel is installed for all", () => {
    const paths = {
      "/usr/local/bin/petrel": "petrel",
      "/home/ana/.npm-global/bin/petrel": "petrel",
      "/home/ana/shop/node_modules/.bin/petrel": "npx petrel",
      "C:\\shop\\node_modules\\.bin\\petrel": "npx petrel",
      "/home/ana/petrel/src/cli/main.ts": "npx petrel"
    }
    for (const [path, command] of Object.entries(paths))
      assert.strictEqual(shellCommand(path), command, path)
    assert.strictEqual(shellCommand(undefined), "npx petrel")
  })
})
