import type { Command } from "effect/cli"

/** Global flags that take a value. */
const withValue: ReadonlyArray<string> = [
  "--nats",
  "--creds",
  "--nkey",
  "--nats-ca",
  "--nats-cert",
  "--nats-key",
  "--prefix",
  "--events",
  "--log-level",
  "--completions"
]

/** Returns the arguments that are neither flags nor a global flag's values. */
const operandsOf = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.filter((arg, index) => !arg.startsWith("-") && !withValue.includes(args[index - 1] ?? ""))

/**
 * Returns the first argument that is neither a flag nor a flag's value: the command, if it is one.
 */
export const named = (args: ReadonlyArray<string>): string | undefined => operandsOf(args)[0]

const isHelp = (arg: string): boolean => arg === "--help" || arg === "-h"

/** True for a flag of which it is not known here whether it takes a value. */
const isOfCommand = (arg: string): boolean =>
  arg.startsWith("-") && !isHelp(arg) && arg !== "--json" && !withValue.includes(arg)

/** True if the operands name a command that a group does not have. */
const namesNone = (group: Command.Command.Any, [name, ...rest]: ReadonlyArray<string>): boolean => {
  const all = group.subcommands.flatMap(({ commands }) => commands)
  if (name === undefined || all.length === 0) return false
  const found = all.find((command) => command.name === name)
  return found === undefined || namesNone(found, rest)
}

/**
 * Returns the arguments without a request for help with a command that there is not: the library
 * would show the help of its group instead, as if that had been asked for.
 */
export const withoutVainHelp = (
  args: ReadonlyArray<string>,
  root: Command.Command.Any
): ReadonlyArray<string> => {
  const end = args.findIndex(isOfCommand)
  const certain = end === -1 ? args : args.slice(0, end)
  return namesNone(root, operandsOf(certain)) ? args.filter((arg) => !isHelp(arg)) : args
}
