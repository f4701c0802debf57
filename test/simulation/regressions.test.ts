/* Failures that the simulation has found, as files of actions: each still shows the defect where its
   mend is taken back, and none where it is not. */
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { readScenario } from "./scenario.ts"

const main = fileURLToPath(new URL("./main.ts", import.meta.url))
const directory = new URL("./regressions/", import.meta.url)

/** Runs a file in a process of its own. Returns what it prints. */
const run = (...args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
    })
    child.on("error", reject)
    child.on("close", () => resolve(text))
  })

const found = readdirSync(directory).map((name) => {
  const scenario = readScenario(new URL(name, directory))
  const { bypass = false, crowded = false, fails = "", formerly = [], sabotage = "" } = scenario
  const engine = [...(bypass ? ["bypass"] : []), ...(crowded ? ["crowded"] : []), ...formerly].join(
    ", "
  )
  const file = fileURLToPath(new URL(name, directory))
  return { name, file, fails, sabotage, engine }
})

describe("a failure that the simulation found", () => {
  // A process loads one engine. That without a defect runs all files that it fits: half of what a
  // file takes is to load the engine.
  for (const [engine, files] of Map.groupBy(found, (each) => each.engine))
    it(`needs a defect, in the engine as it is${engine === "" ? "" : ` with: ${engine}`}`, {
      retry: 0,
      timeout: 180_000
    }, async () => {
      const printed = await run(...files.flatMap(({ file }) => ["--file", file]))
      const results = printed.split("\n").filter((line) => line.startsWith("seed "))
      assert.lengthOf(results, files.length)
      const failed = files.filter((_, index) => results[index]?.includes(" 0 failures") !== true)
      assert.deepStrictEqual(
        failed.map(({ name }) => name),
        []
      )
    })

  for (const { fails, file, name, sabotage } of found)
    it(`comes back with the defect ${sabotage}: ${name}`, {
      retry: 0,
      timeout: 180_000
    }, async () => {
      const [kind = "?"] = fails.split(":")
      assert.include(await run("--file", file, "--sabotage", sabotage), `  ${kind}: `)
    })
})
