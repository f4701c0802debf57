import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { providersReference } from "./providers-reference.ts"

const page = join(import.meta.dirname, "../../docs/reference/providers.md")

describe("docs/reference/providers.md", () => {
  it("has the providers as they are", async () => {
    const text = await readFile(page, "utf8")
    const made = providersReference(text)
    if (process.env.PETREL_WRITE_REFERENCE !== undefined) await writeFile(page, made)
    assert.strictEqual(
      await readFile(page, "utf8"),
      made,
      "the page is not what the providers say now; `npm run reference` writes it anew"
    )
    assert.lengthOf(made.match(/^\| `stripe`/gm) ?? [], 3)
  })
})
