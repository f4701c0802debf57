/* The command of the simulation: `npm run simulate -- --help`. */
import { readFileSync } from "node:fs"
import { enableCompileCache } from "node:module"
import { join } from "node:path"
import { adaptSource, applySabotage, crowdWindow, makeEventsLarge } from "./apply-sabotage.ts"
import { help, readOptions } from "./options.ts"

/** The engine that files of actions need: their scenario loads the present one. */
interface NeededEngine {
  readonly formerly: ReadonlyArray<string>
  readonly crowded: boolean
  readonly bypass: boolean
}

const engineIn = (files: ReadonlyArray<string>): NeededEngine => {
  const [first, ...others] = files.map((file): NeededEngine => {
    const {
      bypass = false,
      crowded = false,
      formerly = []
    } = JSON.parse(readFileSync(file, "utf8"))
    return { bypass, crowded, formerly }
  })
  if (others.some((other) => JSON.stringify(other) !== JSON.stringify(first)))
    throw new Error("these files need different engines: run each by itself")
  return first ?? { bypass: false, crowded: false, formerly: [] }
}

// Without it, each process strips the types of 300 modules and compiles them.
enableCompileCache(join(import.meta.dirname, "../../node_modules/.cache/petrel-simulation"))
const options = readOptions()
if (options.help) console.log(help)
else {
  const { bypass, crowded, formerly } = engineIn(options.file ?? [])
  adaptSource(formerly, options.bypass || bypass)
  if (options.large) makeEventsLarge()
  if (options.crowded || crowded) crowdWindow()
  if (options.sabotage !== undefined) applySabotage(options.sabotage)
  // The engine is loaded now: a sabotage changes what is loaded.
  const { runCommand } = await import("./command.ts")
  process.exitCode = await runCommand(options)
}
