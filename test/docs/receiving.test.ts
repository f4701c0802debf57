import { execFile } from "node:child_process"
import { createHmac } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import pg from "pg"
import Stripe from "stripe"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { freePort, startServer } from "../kit/server-process.ts"

const root = join(import.meta.dirname, "../..")
const guide = join(root, "docs/guide/receiving")

describe("the page about an inbox by hand", () => {
  const page = readFileSync(join(guide, "by-hand.md"), "utf8")
  const examples = join(root, "examples/receiver-by-hand")

  /** The code without indentation: a page shows a part of a file. */
  const lines = (code: string): string =>
    code
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .join("\n")

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

describe.skipIf(withoutPostgres !== undefined)("the page about receiving webhooks", () => {
  const page = readFileSync(join(guide, "README.md"), "utf8")
  const [program = "", ...snippets] = Array.from(
    page.matchAll(/^```js\n(.*?)^```$/gms),
    ([, code = ""]) => code
  )
  const secret = "whsec_of_the_page"
  let server: PostgresServer
  let url: string
  let folder: string

  beforeAll(async () => {
    server = await startPostgres()
    url = await server.database("shop")
    folder = await mkdtemp(join(tmpdir(), "petrel-test-page-"))
    await mkdir(join(folder, "node_modules"))
    await symlink(root, join(folder, "node_modules/petrel"))
    await symlink(join(root, "node_modules/pg"), join(folder, "node_modules/pg"))
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(/-c '(create table [^']*)'/.exec(page)?.[1] ?? "")
    await client.end()
  })
  afterAll(async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it("begins with a program that takes each event of Stripe once", async () => {
    const isWritten = (line: string) => line.trim() !== ""
    assert.lengthOf(program.split("\n").filter(isWritten), 15)
    const port = await freePort()
    const file = join(folder, "shop.mjs")
    await writeFile(file, program.replace("3000", `${port}`))
    const answers = () =>
      fetch(`http://127.0.0.1:${port}`).then(
        () => true,
        () => false
      )
    const settings = join(folder, "settings")
    await writeFile(settings, `DATABASE_URL=${url}\nSTRIPE_SECRET=${secret}\n`)
    const shop = await startServer(
      process.execPath,
      [`--env-file=${settings}`, file],
      { user: undefined, cwd: folder },
      answers
    )
    try {
      const payload = JSON.stringify({
        ...{ id: "evt_1", object: "event", type: "invoice.paid", created: 1 },
        data: { object: { id: "in_1", customer: "cus_7" } }
      })
      const send = async (by: string) => {
        const header = new Stripe("sk_test").webhooks.generateTestHeaderString({
          payload,
          secret: by
        })
        const sent = { method: "POST", body: payload, headers: { "stripe-signature": header } }
        return (await fetch(`http://127.0.0.1:${port}`, sent)).status
      }
      const repeats = Array.from({ length: 10 }, () => send(secret))
      assert.deepStrictEqual(new Set(await Promise.all(repeats)), new Set([200]))
      assert.strictEqual(await send("whsec_of_another"), 401)
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const paid = async () => (await client.query("select invoice from payments")).rows
      while ((await paid()).length === 0);
      assert.strictEqual(await send(secret), 200)
      const open = "select 1 from petrel_inbox where state <> 'done'"
      while ((await client.query(open)).rowCount !== 0);
      assert.deepStrictEqual(await paid(), [{ invoice: "in_1" }])
      await client.end()
    } finally {
      await shop.end("SIGKILL")
    }
  })

  it("goes on with code that runs, and says what it prints", async () => {
    assert.lengthOf(snippets, 10)
    const prelude = `
      import { createHmac } from "node:crypto"
      import { DatabaseSync } from "node:sqlite"
      import pg from "pg"
      import {
        github, memoryStore, postgresStore, receiver, sqliteStore, standardWebhooks, stripe
      } from "petrel/receiver"
      const pool = new pg.Pool({ connectionString: ${JSON.stringify(url)}, allowExitOnIdle: true })
      const store = postgresStore(pool)
      const [newSecret, oldSecret, stripeSecret, githubSecret] = ["whsec_1", "whsec_2", "whsec_3", "hub"]
      const partnerSecret = "whsec_${createHmac("sha256", "a").digest("base64")}"
      const told = []
      const tell = (text) => told.push(text)
      const app = { post: () => undefined }
    `
    const usual = `
      const hooks = receiver({ store, sources: { stripe: stripe({ secrets: [stripeSecret] }) } })
      await hooks.migrate()
    `
    // One process for all: each takes most of a second to start.
    const all = snippets.map(
      (_, index) => `console.log("of ${index}")\nawait import("./${index}.mjs")`
    )
    await writeFile(join(folder, "all.mjs"), all.join("\n"))
    for (const [index, text] of snippets.entries())
      await writeFile(
        join(folder, `${index}.mjs`),
        prelude + (text.includes("const hooks =") ? "" : usual) + text
      )
    const { stdout } = await promisify(execFile)(process.execPath, ["all.mjs"], { cwd: folder })
    const printed = stdout.split(/^of \d+\n/m).slice(1)
    for (const [index, text] of snippets.entries()) {
      const said = Array.from(
        text.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm),
        ([, line = ""]) => line
      )
      for (const line of said) assert.include(printed[index]?.split("\n") ?? [], line, text)
    }
    assert.lengthOf(printed, snippets.length)
  })
})
