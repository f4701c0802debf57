/* The command of the simulation: `npm run simulate -- --help`. */
import { readFileSync } from "node:fs"
import { enableCompileCache } from "node:module"
import { join } from "node:path"
import { adaptSource, applySabotage, crowdWindow, makeEventsLarge } from "./apply-sabotage.ts"
import { help, readOptions } from "./options.ts"

/** What files of actions need of a former engine: their scenario loads the present one. */
const formerlyIn = (files: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [first = [], ...others] = files.map(
    (file): ReadonlyArray<string> => JSON.parse(readFileSync(file, "utf8")).formerly ?? []
  )
  if (others.some((names) => names.join() !== first.join()))
    throw new Error("these files need different former engines: run each by itself")
  return first
}

// Without it, each process strips the types of 300 modules and compiles them.
enableCompileCache(join(import.meta.dirname, "../../node_modules/.cache/petrel-simulation"))
const options = readOptions()
if (options.help) console.log(help)
else {
  adaptSource(formerlyIn(options.file ?? []))
  if (options.large) makeEventsLarge()
  if (options.crowded) crowdWindow()
  if (options.sabotage !== undefined) applySabotage(options.sabotage)
  // The engine is loaded now: a sabotage changes what is loaded.
  const { runCommand } = await import("./command.ts")
  process.exitCode = await runCommand(options)
}
