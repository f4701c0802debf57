import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
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
    assert.lengthOf(made.match(/^\| `stripe`/gm) ?? [], 4)
  })

  it("shows a provider by description that can be made", async () => {
    const snippets = (await readFile(page, "utf8")).matchAll(/^```js\n(.*?)^```$/gms)
    const [, snippet = ""] = [...snippets].find(([, code]) => code?.includes("genericHmac")) ?? []
    const source = pathToFileURL(join(import.meta.dirname, "../../src/providers/providers.ts"))
    const folder = await mkdtemp(join(tmpdir(), "petrel-providers-"))
    try {
      const file = join(folder, "shown.mjs")
      const code = snippet
        .replace('"petrel/providers"', JSON.stringify(source.href))
        .replace("process.env.ACME_SECRET", '"sealing-wax-1"')
      await writeFile(file, `${code}\nexport { acme }\n`)
      const { acme } = await import(pathToFileURL(file).href)
      assert.strictEqual(acme.name, "hmac")
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
