import { Console, Layer, Option } from "effect"
import type { CliError, HelpDoc } from "effect/cli"
import { CliConfig, CliOutput, GlobalFlag } from "effect/cli"
import { nearestName } from "../policy/nearest-name.ts"

const flagNames = (help: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  [...help.flags, ...(help.inheritedFlags ?? []), ...(help.globalFlags ?? [])].map(
    ({ name }) => `--${name}`
  )

const commandNames = (help: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  (help.subcommands ?? []).flatMap(({ commands }) => commands.map(({ name }) => name))

const meant = (name: string, names: ReadonlyArray<string>): string => {
  const nearest = nearestName(name, names)
  return nearest === undefined ? "" : `; did you mean ${nearest}?`
}

const quoted = (value: string): string => JSON.stringify(value)

const badValue = ({ expected, kind, option, value }: CliError.InvalidValue): string => {
  const name = kind === "flag" ? `--${option}` : option
  if (value === "") return `${name} needs a value`
  const times = /^(\d+) occurrences$/.exec(value)?.[1]
  if (times !== undefined && expected === "at most 1 value")
    return `${name} was given ${times} times and can be given once`
  if (expected.startsWith("must ")) return `${name} ${quoted(value)} ${expected}`
  if (/^"[^"]*"( \| "[^"]*")+$/.test(expected))
    return `${name} ${quoted(value)} must be one of ${expected.replaceAll('"', "").replaceAll(" | ", ", ")}`
  return `${name} ${quoted(value)} is not possible: ${expected.replace(/^Expected:? /, "expected ")}`
}

const sentence = (error: CliError.NonShowHelpErrors, help: HelpDoc.HelpDoc): string => {
  switch (error._tag) {
    case "UnrecognizedOption":
      return error.option.startsWith("--")
        ? `there is no flag ${error.option} here${meant(error.option, flagNames(help))}`
        : `there is no flag ${error.option} here`
    case "UnknownSubcommand":
      return error.suggestions.length > 0
        ? `there is no command ${quoted(error.subcommand)}${meant(error.subcommand, commandNames(help))}`
        : `there is no command ${quoted(error.subcommand)}, only ${commandNames(help).join(", ")}`
    case "MissingOption":
      return `--${error.option} is missing`
    case "MissingArgument":
      return `${error.argument} is missing`
    case "UnexpectedArgument":
      return `nothing takes the argument ${error.arguments.map(quoted).join(", ")} here`
    case "InvalidValue":
      return badValue(error)
    default:
      return error.message
  }
}

/** What is wrong with an invocation, in one line. */
export const usageProblem = (
  errors: ReadonlyArray<CliError.NonShowHelpErrors>,
  help: HelpDoc.HelpDoc,
  commandPath: ReadonlyArray<string>
): string => {
  // Under a command that does not exist, no flag is known either.
  const unknown = errors.find(({ _tag }) => _tag === "UnknownSubcommand")
  const told = unknown === undefined ? errors : [unknown]
  const problems = [...new Set(told.map((error) => sentence(error, help)))].join("; ")
  return `${problems}${problems.endsWith("?") ? "" : ";"} see \`${commandPath.join(" ")} --help\``
}

const isRoot = (commandPath: ReadonlyArray<string>) => commandPath.length <= 1

/** Flags of the library whose own help lists all choices twice. */
const plainer: Record<string, readonly [type: string, description: string]> = {
  completions: ["SHELL", "Print completions for bash, zsh, fish or powershell"],
  "log-level": ["LEVEL", "Log from this level on: trace, debug, info (the default), warn or error"]
}

const withPlainFlags = (help: HelpDoc.HelpDoc): HelpDoc.HelpDoc => ({
  ...help,
  globalFlags: (help.globalFlags ?? []).map((flag) => {
    const [type, description] = plainer[flag.name] ?? []
    return type === undefined || description === undefined
      ? flag
      : { ...flag, type, description: Option.some(description) }
  })
})

const presenter: CliOutput.Presenter = {
  present: (event) => {
    switch (event._tag) {
      case "Version":
        return Console.log(`${event.name} ${event.version}`)
      case "Help":
        return event.reason === "Requested" || isRoot(event.commandPath)
          ? CliOutput.defaultPresenter.present({ ...event, helpDoc: withPlainFlags(event.helpDoc) })
          : Console.error(
              `petrel: ${event.commandPath.join(" ")} needs a command after it: ${commandNames(event.helpDoc).join(", ")}`
            )
      case "InvalidInvocation":
        return Console.error(
          `petrel: ${usageProblem(event.errors, event.helpDoc, event.commandPath)}`
        )
    }
  }
}

/** Help on stdout when it was asked for; for a wrong invocation one line on stderr. */
export const usage = Layer.mergeAll(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({
    builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel]
  })
)
