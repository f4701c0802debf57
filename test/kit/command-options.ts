import { type ParseArgsOptionsConfig, parseArgs } from "node:util"

/**
 * Reads the options of this process, as parseArgs does. Ends it with 2 and one sentence where an
 * option is none.
 *
 * @param name of the command, for that sentence.
 */
export const readCommandOptions = <const Options extends ParseArgsOptionsConfig>(
  name: string,
  options: Options
) => {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/)
    process.stderr.write(`${name}: ${why.replace(/\.$/, "")}; --help says what there is.\n`)
    process.exit(2)
  }
}
