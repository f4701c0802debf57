import { Console, Layer, Option } from "effect"
import type { CliError, HelpDoc } from "effect/cli"
import { CliConfig, CliOutput, GlobalFlag } from "effect/cli"
import { shownAddress } from "../broker/address.ts"
import { nearestName } from "../policy/nearest-name.ts"
import { visible } from "./format/visible.ts"

const flagNames = (help: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  [...help.flags, ...(help.inheritedFlags ?? []), ...(help.globalFlags ?? [])].map(
    ({ name }) => name
  )

const commandNames = (help: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  (help.subcommands ?? []).flatMap(({ commands }) => commands.map(({ name }) => name))

/** @param dashes what all names begin with. Compared with them, short names would look similar. */
const meant = (name: string, names: ReadonlyArray<string>, dashes = ""): string => {
  const nearest = nearestName(name.slice(dashes.length), names)
  return nearest === undefined ? "" : `; did you mean ${dashes}${nearest}?`
}

const quoted = (value: string): string => JSON.stringify(value)

/** As shown in the help. The library also accepts all, warning, fatal and none. */
const logLevels = "trace, debug, info, warn or error"

const badValue = ({ expected, kind, option, value }: CliError.InvalidValue): string => {
  const name = kind === "flag" ? `--${option}` : option
  // The password of an address is not shown.
  const shown = quoted(option === "nats" ? shownAddress(value) : value)
  if (value === "") return `${name} needs a value`
  const times = /^(\d+) occurrences$/.exec(value)?.[1]
  if (times !== undefined && expected === "at most 1 value")
    return `${name} was given ${times} times and can be given once`
  if (option === "log-level") return `${name} ${shown} must be ${logLevels}`
  if (expected.startsWith("must ")) return `${name} ${shown} ${expected}`
  if (/\b(number|integer)\b/.test(expected)) return `${name} ${shown} must be a whole number`
  if (/^"[^"]*"( \| "[^"]*")+$/.test(expected))
    return `${name} ${shown} must be one of ${expected.replaceAll('"', "").replaceAll(" | ", ", ")}`
  return `${name} ${shown} is not possible: ${expected.replace(/^Expected:? /, "expected ")}`
}

const sentence = (error: CliError.NonShowHelpErrors, help: HelpDoc.HelpDoc): string => {
  switch (error._tag) {
    case "UnrecognizedOption":
      return error.option.startsWith("--")
        ? `there is no flag ${error.option} here${meant(error.option, flagNames(help), "--")}`
        : `there is no flag ${error.option} here`
    case "UnknownSubcommand": {
      const names = commandNames(help)
      const hint = meant(error.subcommand, names) || `, only ${names.join(", ")}`
      return `there is no command ${quoted(error.subcommand)}${hint}`
    }
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

/**
 * Returns the errors that are not consequences of another one. The value of an unknown flag looks
 * like a command or an argument; under an unknown command, all flags are unknown, too.
 */
const causes = (
  errors: ReadonlyArray<CliError.NonShowHelpErrors>
): ReadonlyArray<CliError.NonShowHelpErrors> => {
  const isUnknownFlag = ({ _tag }: CliError.NonShowHelpErrors) => _tag === "UnrecognizedOption"
  const first = errors.find((error) => error._tag === "UnknownSubcommand" || isUnknownFlag(error))
  if (first === undefined) return errors
  return isUnknownFlag(first) ? errors.filter(isUnknownFlag) : [first]
}

/**
 * `--since -5m` is parsed as a flag without a value and the flags -5 and -m. Reports this as one
 * mistake.
 */
const sentences = (
  errors: ReadonlyArray<CliError.NonShowHelpErrors>,
  help: HelpDoc.HelpDoc
): ReadonlyArray<string> => {
  const letters = errors.filter(
    (error) => error._tag === "UnrecognizedOption" && !error.option.startsWith("--")
  )
  const isQuantity = letters.some(
    (error) => error._tag === "UnrecognizedOption" && /^-\d$/.test(error.option)
  )
  const shown = isQuantity ? errors.filter((error) => !letters.includes(error)) : errors
  return causes(shown).map((error) =>
    isQuantity && error._tag === "InvalidValue" && error.value === ""
      ? `--${error.option} must not begin with a minus`
      : sentence(error, help)
  )
}

/** Returns the problems of an invocation in one line. An unknown flag is the only one then. */
const usageProblem = (
  errors: ReadonlyArray<CliError.NonShowHelpErrors>,
  help: HelpDoc.HelpDoc,
  commandPath: ReadonlyArray<string>
): string => {
  const problems = [...new Set(sentences(errors, help))].join("; ")
  return `${problems}${problems.endsWith("?") ? "" : ";"} see \`${commandPath.join(" ")} --help\``
}

/** Library flags whose own help lists all choices twice. */
const plainer: Record<string, readonly [type: string, description: string]> = {
  completions: ["SHELL", "Print completions for bash, zsh, fish or powershell"],
  "log-level": ["LEVEL", `Log from this level on: ${logLevels} (default: info; petrel dev: warn)`]
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

/** The library prints no blank line between subcommands and examples, unless there are two groups. */
const withBlankLine = (help: HelpDoc.HelpDoc): HelpDoc.HelpDoc =>
  help.subcommands?.length === 1 && (help.examples ?? []).length > 0
    ? {
        ...help,
        subcommands: [...help.subcommands, { group: undefined, commands: [] as never }]
      }
    : help

const presenter: CliOutput.Presenter = {
  present: (event) => {
    switch (event._tag) {
      case "Version":
        return Console.log(`${event.name} ${event.version}`)
      case "Help":
        return CliOutput.defaultPresenter.present({
          ...event,
          helpDoc: withBlankLine(withPlainFlags(event.helpDoc))
        })
      case "InvalidInvocation":
        return Console.error(
          `petrel: ${visible(usageProblem(event.errors, event.helpDoc, event.commandPath))}`
        )
    }
  }
}

/**
 * Prints help on stdout if it was requested or a group has no command. Prints one line on stderr
 * for an invalid invocation.
 */
export const usage = Layer.mergeAll(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({
    builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel]
  })
)
