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

describe("a failure that the simulation found", () => {
  for (const name of readdirSync(directory)) {
    const { fails = "", sabotage = "" } = readScenario(new URL(name, directory))
    const file = fileURLToPath(new URL(name, directory))
    it(`needs the defect ${sabotage}`, { timeout: 180_000 }, async () => {
      const [without, withDefect] = await Promise.all([
        run("--file", file),
        run("--file", file, "--sabotage", sabotage)
      ])
      assert.include(without, " 0 failures")
      const [kind = "?"] = fails.split(":")
      assert.include(withDefect, `  ${kind}: `)
    })
  }
})
