/* The command of the simulation: `npm run simulate -- --help`. */
import { adaptSource, applySabotage } from "./apply-sabotage.ts"
import { help, readOptions } from "./options.ts"

const options = readOptions()
if (options.help) console.log(help)
else {
  adaptSource()
  if (options.sabotage !== undefined) applySabotage(options.sabotage)
  // The engine is loaded now: a sabotage changes what is loaded.
  const { runCommand } = await import("./command.ts")
  process.exitCode = await runCommand(options)
}
