import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { clientOperations, clientSchemas } from "../../build/client-source.ts"
import { formFields } from "../../build/form-fields.ts"
import { helpOf, subcommandsIn } from "./help.ts"
import { run } from "./in-process.ts"
import { settingsReference } from "./settings-reference.ts"

const root = join(import.meta.dirname, "../..")
const writes = process.env.PETREL_WRITE_REFERENCE !== undefined

/** Compares a text with the file that holds it, and writes the file instead if that is asked for. */
const compare = async (file: string, text: string): Promise<void> => {
  const path = join(root, file)
  if (writes) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  assert.strictEqual(
    await readFile(path, "utf8"),
    text,
    `${file} is not what Petrel says now; \`npm run reference\` writes it anew`
  )
}

const isShared = (block: string): boolean => /^(INHERITED|GLOBAL) FLAGS\n/.test(block)

const sectionsOf = (
  path: ReadonlyArray<string>,
  shown: ReadonlySet<string>
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const blocks = yield* helpOf(path)
    const own = blocks.filter((block) => !shown.has(block)).join("\n\n")
    const inner = yield* Effect.forEach(subcommandsIn(blocks), (name) =>
      sectionsOf([...path, name], shown)
    )
    return [`## petrel ${path.join(" ")}\n\n\`\`\`\n${own}\n\`\`\`\n`, ...inner.flat()]
  })

describe("The reference", () => {
  it.effect("has the help of every command", () =>
    Effect.gen(function* () {
      const root = yield* helpOf([])
      const names = subcommandsIn(root)
      const shared = (yield* helpOf(names.slice(0, 1))).filter(isShared)
      const sections = yield* Effect.forEach(names, (name) => sectionsOf([name], new Set(shared)))
      const head = [
        "# Commands",
        "",
        "This page lists what `petrel COMMAND --help` prints, for every command. The inherited and global flags apply to every command and are listed once. `npm run reference` makes this page.",
        "",
        `\`\`\`\n${[...root.filter((block) => !isShared(block) && !block.startsWith("FLAGS\n")), ...shared].join("\n\n")}\n\`\`\`\n`
      ]
      yield* Effect.promise(() =>
        compare("docs/reference/commands.md", [...head, ...sections.flat()].join("\n"))
      )
    })
  )

  it("has the settings of endpoints and tenants", async () => {
    await compare("docs/reference/settings.md", settingsReference())
  })

  it.effect("has the OpenAPI document", () =>
    Effect.gen(function* () {
      const { out } = yield* run("openapi")
      yield* Effect.promise(() => compare("docs/reference/openapi.json", `${out.join("\n")}\n`))
    })
  )

  it("has the types and the table of the client", async () => {
    await compare("src/client/generated/schemas.ts", clientSchemas())
    await compare("src/client/generated/operations.ts", clientOperations())
  })

  it("has the fields of the pages' forms", async () => {
    await compare("ui/generated/forms.ts", formFields())
  })
})
