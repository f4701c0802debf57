import { execFile, execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { httpClient } from "../../src/client/client.ts"
import { start } from "../cli/running.ts"

const exec = promisify(execFile)
const limitMs = 300_000

/** How a language's snippets are run: a file, and commands in its folder, the last of which runs it. */
interface Language {
  readonly name: string
  readonly file: string
  readonly version: ReadonlyArray<string>
  /** What fetches the NATS client. */
  readonly fetch: ReadonlyArray<ReadonlyArray<string>>
  readonly run: ReadonlyArray<string>
}

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>a</groupId><artifactId>a</artifactId><version>1</version><dependencies><dependency>
<groupId>io.nats</groupId><artifactId>jnats</artifactId><version>2.20.6</version></dependency></dependencies></project>`

const languages: Readonly<Record<string, Language>> = {
  go: {
    ...{ name: "Go", file: "main.go", version: ["go", "version"], run: ["go", "run", "."] },
    fetch: [["go", "get", "github.com/nats-io/nats.go"]]
  },
  python: {
    ...{ name: "Python", file: "publish.py", version: ["python3", "--version"] },
    fetch: [["python3", "-m", "pip", "install", "--quiet", "--target", ".", "nats-py"]],
    run: ["python3", "publish.py"]
  },
  java: {
    ...{ name: "Java", file: "Publish.java", version: ["mvn", "--version"] },
    fetch: [["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]],
    run: ["java", "-cp", "lib/*", "Publish.java"]
  },
  ruby: {
    ...{ name: "Ruby", file: "publish.rb", version: ["ruby", "--version"] },
    ...{ fetch: [], run: ["ruby", "publish.rb"] }
  },
  php: {
    ...{ name: "PHP", file: "publish.php", version: ["php", "--version"] },
    ...{ fetch: [], run: ["php", "publish.php"] }
  }
}

const page = readFileSync(join(import.meta.dirname, "../../docs/guide/publishing-from.md"), "utf8")

interface Snippet {
  readonly over: string
  readonly language: Language
  readonly text: string
  readonly isTried: boolean
}

const snippets = page
  .split(/^## Over /m)
  .slice(1)
  .flatMap((section) => {
    const [over = ""] = section.split("\n")
    return Array.from(
      section.matchAll(/^([^\n]*)\n\n```(\w+)\n(.*?)^```$/gms),
      (found): Snippet => {
        const [, said = "", name = "", text = ""] = found
        const language = languages[name]
        if (language === undefined) throw new Error(`nothing runs ${name}`)
        return { over, language, text, isTried: !said.includes("not tried") }
      }
    )
  })

const isThere = ({ version: [command = "", ...args] }: Language): boolean => {
  try {
    execFileSync(command, args, { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** Makes a folder for a snippet, with the NATS client where it needs one, and runs it there. */
const runSnippet = async ({ language, over, text }: Snippet, env: NodeJS.ProcessEnv) => {
  const cwd = await mkdtemp(join(tmpdir(), "petrel-test-snippet-"))
  const options = { cwd, env: { ...process.env, ...env }, timeout: limitMs }
  const command = ([name = "", ...args]: ReadonlyArray<string>) => exec(name, args, options)
  try {
    await writeFile(join(cwd, language.file), text)
    await writeFile(join(cwd, "pom.xml"), pom)
    if (language.name === "Go") await command(["go", "mod", "init", "example"])
    if (over === "NATS") for (const one of language.fetch) await command(one)
    return (await command(language.run)).stdout
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

describe("what the page of other languages shows", () => {
  it("is a snippet of each over NATS and over HTTP", () => {
    assert.lengthOf(snippets, 10)
    assert.deepStrictEqual(
      snippets.filter(({ isTried }) => !isTried).map(({ language, over }) => [language.name, over]),
      [
        ["Ruby", "NATS"],
        ["PHP", "NATS"]
      ]
    )
  })

  for (const snippet of snippets) {
    const { isTried, language, over } = snippet
    it.live.skipIf(!isTried || !isThere(language))(
      `publishes from ${language.name} over ${over}`,
      () =>
        Effect.gen(function* () {
          const data = yield* Effect.acquireRelease(
            Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-dev-"))),
            (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
          )
          const dev = yield* start("dev", "--nats-port", "0", "--data", data)
          yield* dev.until((out) => out.some((line) => line.startsWith("To look back")))
          const said = dev.out.join("\n")
          const [, nats = ""] = /takes events at (\S+)/.exec(said) ?? []
          const [, url = ""] = /HTTP API is at (\S+)/.exec(said) ?? []
          const file = join(data, "api-token")
          const token = (yield* Effect.promise(() => readFile(file, "utf8"))).trim()
          const printed = yield* Effect.promise(() =>
            runSnippet(snippet, { NATS_URL: nats, PETREL_URL: url, PETREL_TOKEN: token })
          )
          const [id = ""] = /acme\.[a-z]+-4[23]-paid/.exec(printed) ?? []
          const petrel = httpClient({ url, token, tenant: "acme" })
          const event = yield* Effect.promise(() => petrel.deliveries.event({ event: id }))
          assert.deepInclude(event, { id, type: "invoice.paid" })
          const { body, contentType } = yield* Effect.promise(() =>
            petrel.deliveries.eventBody({ event: id })
          )
          assert.strictEqual(contentType, "application/json")
          assert.include(new TextDecoder().decode(body), '{"invoice":4')
          // It ends its broker, which writes to the folder that is removed.
          yield* dev.signal("SIGINT")
          assert.strictEqual(yield* dev.ended, 0)
        }),
      limitMs
    )
  }
})
