import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Layer, Stdio } from "effect"
import { CliError, Command } from "effect/cli"
import { rootFor } from "../../src/cli/program.ts"
import { helpOf } from "../cli/help.ts"
import { platform } from "../cli/in-process.ts"
import { commandsIn } from "./shell-words.ts"

const root = join(import.meta.dirname, "../..")
const textOf = (page: string): string => readFileSync(join(root, page), "utf8")

/** All pages that people read. The changelog tells of commands and files as they were. */
const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((page) => page !== "" && page !== "CHANGELOG.md" && existsSync(join(root, page)))

const fences = /^```(\w*)\n(.*?)^```$/gms
const withoutFences = (text: string): string => text.replace(fences, "")

/** Returns the anchors of a page, made of its headings as GitHub does. */
const anchorsOf = (page: string): ReadonlyArray<string> =>
  [...withoutFences(textOf(page)).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-")
  )

/** Returns a page's links within the repository that lead nowhere. */
const brokenLinks = (page: string): ReadonlyArray<string> =>
  [...withoutFences(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
    if (link.includes("://")) return []
    const [path = "", anchor] = link.split("#")
    const target = path === "" ? page : normalize(join(dirname(page), path))
    if (!existsSync(join(root, target))) return [link]
    return anchor === undefined || anchorsOf(target).includes(anchor) ? [] : [link]
  })

const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).split("\n")

/** Returns the TypeScript files that a page names and that do not exist, with the page. */
const missingFiles = (page: string): ReadonlyArray<string> =>
  [...withoutFences(textOf(page)).matchAll(/[`(]((?:[\w.-]+\/)*[\w.-]+\.tsx?)[`)]/g)].flatMap(
    ([, name = ""]) =>
      name.startsWith(".") || files.some((file) => `/${file}`.endsWith(`/${name}`))
        ? []
        : [`${page}: ${name}`]
  )

/** Returns the arguments of `petrel`, if the words of a command start it. */
const argumentsIn = (words: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const [first, second] = words
  if (first === "petrel") return [words.slice(1)]
  if (first === "npx" && second === "petrel") return [words.slice(2)]
  if (first === "npm" && second === "start") return [["dev", ...words.slice(3)]]
  return []
}

/** Returns the names of the command that the words lead to, from the root. */
const pathOf = (
  command: Command.Command.Any,
  words: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const [first, ...rest] = words
  const inner = command.subcommands
    .flatMap(({ commands }) => commands)
    .find(({ name }) => name === first)
  return inner === undefined ? [] : [inner.name, ...pathOf(inner, rest)]
}

const system = Layer.merge(platform, Stdio.layerTest({}))

const silent: Console.Console = Object.assign(Object.create(console), {
  log: () => undefined,
  error: () => undefined
})

const isParsed = new CliError.UserError({ cause: "nothing is wrong" })

/** Returns what the command line says of arguments that are wrong. Runs no command. */
const refusalsOf = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const parsing = Command.validate(yield* rootFor(args), () => Effect.fail(isParsed))
    const shown = yield* Effect.flip(Command.runWith(parsing, { version: "" })(args))
    const errors = CliError.isCliError(shown) && shown._tag === "ShowHelp" ? shown.errors : [shown]
    return errors.filter((error) => error !== isParsed).map(({ message }) => message)
  }).pipe(Effect.provideService(Console.Console, silent), Effect.provide(system))

const helpTexts = "docs/reference/commands.md"

/** Returns the examples in the help texts, each command's in a fence of its own. */
const examplesOf = (page: string): string =>
  [...textOf(page).matchAll(/^EXAMPLES\n(.*?)^(```|[A-Z])/gms)]
    .map(([, examples = ""]) => `\`\`\`\n${examples}\n\`\`\`\n`)
    .join("")

/** Returns the commands that stand in fences of their own, and so can be typed as they are. */
const fencedCommands = (page: string) =>
  [...(page === helpTexts ? examplesOf : textOf)(page).matchAll(fences)]
    .filter(([, language = ""]) => /^(sh|bash)?$/.test(language))
    .flatMap(([, , script = ""]) => commandsIn(script).flatMap(argumentsIn))

/** Returns the commands within a line of text, often without what they are about. */
const mentionedCommands = (page: string) =>
  [...withoutFences(textOf(page)).matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) =>
    commandsIn(code).flatMap(argumentsIn)
  )

/** Returns the command that the words name, and the flags among them that its help lacks. */
const unknownIn = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const command = yield* Effect.map(rootFor(args), (root) => pathOf(root, args))
    const flags = args.flatMap((arg) => arg.match(/^--[a-z][a-z-]*/) ?? [])
    const help = (yield* helpOf(command)).join("\n")
    return flags.filter((flag) => !help.includes(flag))
  })

describe("The pages", () => {
  it.each(pages)("of %s link to what is there", (page) => {
    assert.deepStrictEqual(brokenLinks(page), [])
  })

  it("name source files that there are, but for the diary, which tells of them as they were", () => {
    const present = pages.filter((page) => page !== "bench/DIARY.md")
    assert.deepStrictEqual(present.flatMap(missingFiles), [])
  })

  it.effect("show commands that the command line takes", () =>
    Effect.gen(function* () {
      const shown = pages.flatMap((page) => fencedCommands(page).map((args) => ({ page, args })))
      assert.isAbove(shown.length, 50)
      const refused = yield* Effect.forEach(shown, ({ page, args }) =>
        Effect.map(refusalsOf(args), (said) =>
          said.map((text) => `${page}: petrel ${args.join(" ")}: ${text}`)
        )
      )
      assert.deepStrictEqual(refused.flat(), [])
    })
  )

  it.effect("name commands and flags that there are", () =>
    Effect.gen(function* () {
      const unknown = yield* Effect.forEach(
        pages.flatMap((page) => mentionedCommands(page).map((args) => ({ page, args }))),
        ({ page, args }) =>
          Effect.map(unknownIn(args), (flags) =>
            flags.map((flag) => `${page}: petrel ${args.join(" ")}: ${flag}`)
          )
      )
      assert.deepStrictEqual(unknown.flat(), [])
    })
  )
})
