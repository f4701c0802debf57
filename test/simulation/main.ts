/* The command of the simulation: `npm run simulate -- --help`. */
import { readFileSync } from "node:fs"
import { adaptSource, applySabotage } from "./apply-sabotage.ts"
import { help, readOptions } from "./options.ts"

/** What a file of actions needs of a former engine: its scenario loads the present one. */
const formerlyIn = (file: string): ReadonlyArray<string> | undefined =>
  JSON.parse(readFileSync(file, "utf8")).formerly

const options = readOptions()
if (options.help) console.log(help)
else {
  adaptSource(options.file === undefined ? [] : formerlyIn(options.file))
  if (options.sabotage !== undefined) applySabotage(options.sabotage)
  // The engine is loaded now: a sabotage changes what is loaded.
  const { runCommand } = await import("./command.ts")
  process.exitCode = await runCommand(options)
}
