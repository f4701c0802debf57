import { readdir, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Client } from "pg"
import { beforeAll } from "vitest"
import { migration } from "../../src/outbox/migration.ts"
import { readTable, usualTable } from "../../src/outbox/table-name.ts"
import { tellInstalled, writeStory } from "../client/told.ts"
import { nth } from "../kit/engine.ts"
import { exec, packaged } from "../kit/packaged.ts"
import { startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { otherRuntimes, type Runtime, runModule, thisNode } from "../kit/runtimes.ts"
import { verified, verifyingProgram } from "../providers/installed.ts"
import {
  enqueued,
  enqueueInstalled,
  receivedOnce,
  receiveInstalled
} from "../receiver/installed.ts"

const { path, startDev } = packaged()

const modules = join(import.meta.dirname, "../../node_modules")

let runtimes: ReadonlyArray<Runtime>
beforeAll(async () => {
  runtimes = await otherRuntimes()
  await writeStory(path("project"))
}, 600_000)

describe("the installed package, on what is not the Node of the repository", () => {
  it.live(
    "lets a program use the client, over HTTP and over NATS",
    () =>
      Effect.gen(function* () {
        const dev = yield* startDev
        assert.lengthOf(runtimes, 4)
        for (const runtime of runtimes)
          for (const over of ["http", "nats"] as const) {
            yield* Effect.logInfo(`${runtime.name}, over ${over}`)
            yield* tellInstalled(runtime, path("project"), dev, over)
          }
      }),
    300_000
  )

  it("lets a program receive each webhook once", async () => {
    for (const runtime of runtimes)
      assert.deepStrictEqual(
        { runtime, told: await receiveInstalled(runtime, path("project")) },
        { runtime, told: receivedOnce }
      )
  })

  it("lets a program keep its inbox in SQLite, from Node 22 on", async () => {
    const [, node22] = runtimes
    if (node22 === undefined) throw new Error("there are four")
    assert.strictEqual(node22.name, "Node 22")
    for (const runtime of [node22, thisNode])
      assert.deepStrictEqual(
        { runtime, told: await receiveInstalled(runtime, path("project"), "sqlite") },
        { runtime, told: { ...receivedOnce, stored: 2 } }
      )
  })

  it.skipIf(withoutPostgres !== undefined)(
    "lets a program keep its inbox and its outbox in PostgreSQL",
    async () => {
      const postgres = await startPostgres()
      try {
        const url = await postgres.database("shop")
        // The program's own client: the package brings none.
        for (const name of await readdir(modules))
          if (/^pg/.test(name))
            await symlink(join(modules, name), path("project/node_modules", name)).catch(
              () => undefined
            )
        const outbox = readTable(usualTable)
        if (outbox === undefined) throw new Error("the usual table has a name")
        const client = new Client({ connectionString: url })
        await client.connect()
        await client.query(migration(outbox))
        await client.end()
        for (const runtime of [...runtimes.slice(0, 2), thisNode]) {
          assert.deepStrictEqual(
            { runtime, told: await receiveInstalled(runtime, path("project"), "postgres", url) },
            { runtime, told: { ...receivedOnce, stored: 2 } }
          )
          assert.deepStrictEqual(
            { runtime, told: await enqueueInstalled(runtime, path("project"), url) },
            { runtime, told: enqueued }
          )
        }
      } finally {
        await postgres.stop()
      }
    }
  )

  it("verifies webhooks in a program", async () => {
    await writeFile(path("project/verified.js"), verifyingProgram)
    for (const runtime of runtimes)
      assert.deepStrictEqual(
        await runModule(runtime, path("project"), "verified.js"),
        verified,
        runtime.name
      )
  })

  it("says in one sentence which Node it needs", async () => {
    const { command, name } = nth(runtimes, 0)
    assert.strictEqual(name, "Node 20")
    const failed = await exec(command, [path("project/node_modules/.bin/petrel"), "dev"]).catch(
      (error: { code: number; stderr: string }) => error
    )
    assert.deepInclude(failed, {
      code: 1,
      stderr:
        "petrel: Node 22.19 or newer is needed, and this is 20.20.2: install one from https://nodejs.org\n"
    })
  })
})
