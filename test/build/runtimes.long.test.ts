import { writeFile } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { beforeAll } from "vitest"
import { tellInstalled, writeStory } from "../client/told.ts"
import { nth } from "../kit/engine.ts"
import { exec, packaged } from "../kit/packaged.ts"
import { otherRuntimes, type Runtime, runModule } from "../kit/runtimes.ts"
import { verified, verifyingProgram } from "../providers/installed.ts"
import { receivedOnce, receiveInstalled } from "../receiver/installed.ts"

const { path, startDev } = packaged()

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
        assert.lengthOf(runtimes, 3)
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
