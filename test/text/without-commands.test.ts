import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { withoutCommands } from "../../src/text/plain-text.ts"

const src = new URL("../../src/", import.meta.url).pathname

/** Texts that no answer over HTTP or NATS holds. */
const elsewhere = [
  /^cli\//,
  // Messages of alerts, and of servers and commands before they have begun.
  /^text\/alert-text\.ts/,
  /^broker\/(access|connection|credentials|init|losses|reservation|tenant-streams|embedded\/.*)\.ts/,
  /^(cluster\/heartbeat|metrics\/metrics-server)\.ts/,
  // The document says how the first token is made.
  /^api\/api\.ts/,
  // Written into the history, and commands of their own.
  /^operations\/endpoints\/rebuild\.ts/,
  /^operations\/(backup|repartition)\//,
  // Beside a database: a command, and the package for programs that receive webhooks.
  /^(relay|receiver)\//
]

/** A command, or a flag of one; no decrement, no name of a client. */
const command = /\bpetrel (?!projection")[a-z]+|[ `(]--[a-z](?!\w*\.[#\w]|eft\b)/

/** Returns the lines of the sources that may be in an answer and name a command. */
const naming = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !elsewhere.some((one) => one.test(path)))
  .flatMap((path) =>
    readFileSync(join(src, path), "utf8")
      .split("\n")
      .map((line, index) => ({ where: `${path}:${index + 1}`, line: line.trim() }))
  )
  .filter(({ line }) => command.test(line) && !/^(\/?\*|\/\/)/.test(line))

/** Fills what is inserted into a template. */
const filled = (line: string): string => {
  const before = line.replaceAll("\\`", "\u0001")
  let text = before
  for (let last = ""; last !== text; ) {
    last = text
    text = text.replaceAll(/\$\{[^{}]*\}/g, "X")
  }
  return text.replaceAll("\u0001", "`")
}

describe("a message without commands", () => {
  it("keeps what else it says", () => {
    const cases = [
      ["a is missing: run `petrel init`, which makes it again", "a is missing"],
      [
        "wait for answers, or a higher `rate` (`petrel endpoint set a/b --rate`)",
        "wait for answers, or a higher `rate`"
      ],
      ["Set it (`petrel a` or `--b`). Then wait; see `petrel c`.", "Set it. Then wait."],
      ["look at the logs, or start another with `petrel worker`", "look at the logs"],
      ["held until 2026-01-01 10:32:00; see `petrel status`", "held until 2026-01-01 10:32:00"],
      [
        "no worker (since 10:00): nothing goes out; see `petrel a`; it waits",
        "no worker (since 10:00): nothing goes out; it waits"
      ],
      ["nothing to leave out", "nothing to leave out"]
    ] as const
    for (const [given, left] of cases) assert.strictEqual(withoutCommands(given), left)
  })

  it("names none, whichever it was", () => {
    assert.isAbove(naming.length, 60)
    const left = naming
      .map(({ line, where }) => `${where} ${withoutCommands(filled(line))}`)
      .filter((text) => command.test(text))
    assert.deepStrictEqual(left, [])
  })
})
