import { spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { startDrivenConsole } from "../kit/driven-console.ts"
import { fuzz, groups, limitMs } from "../kit/fuzz.ts"
import { importTool } from "../kit/openapi-tools.ts"
import { onServer } from "../kit/scenario.ts"

/** Where the program is; `npm run fuzz` installs it. */
const program = process.env.PETREL_SCHEMATHESIS
const inputs = fuzz.inputs ?? 25
/** Inputs of each operation that it makes of the document beside those: some 100 on average. */
const covering = 200

interface Ground {
  readonly groundAt: (
    url: string,
    token: string,
    receiver: string
  ) => (operation: {
    readonly path: string
  }) => Promise<Readonly<Record<string, ReadonlyArray<string>>>>
}

/** The checks that say of each answer whether it is as documented. */
const checks = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "unsupported_method",
  "allow_header_conformance",
  "ignored_auth"
].join(",")

/** Returns the document without addresses that lead out of this machine. */
const withReceiver = (receiver: string): string =>
  JSON.stringify(apiDocument()).replaceAll(/https:\/\/[\w.-]*example\.com[^"\\ ]*/g, receiver)

const run = (command: string, args: ReadonlyArray<string>, cwd: string) =>
  new Promise<{ readonly code: number | null; readonly said: string }>((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] })
    let said = ""
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        said += chunk.toString("utf8")
      })
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, said }))
  })

/** Finds its own token in a list, and may revoke it: that comes last. */
const lastOf: Readonly<Record<string, string>> = { tokens: "tokens.revoke" }
/** Never ends. */
const endless = "deliveries.live"

/** What is driven one after the other, as flags. */
const runsOf = (tag: string | undefined): ReadonlyArray<ReadonlyArray<string>> => {
  const chosen = tag === undefined ? [] : ["--include-tag", tag]
  const lasts = tag === undefined ? Object.values(lastOf) : [lastOf[tag] ?? []].flat()
  const excluded = [...lasts, endless].flatMap((id) => ["--exclude-operation-id", id])
  return [[...chosen, ...excluded], ...lasts.map((id) => ["--include-operation-id", id])]
}

describe.skipIf(program === undefined)("schemathesis, with the OpenAPI document", () => {
  const { scenario, server } = onServer()
  for (const { count, tag } of groups)
    scenario(
      `finds no answer that is not as documented${tag === undefined ? "" : `: ${tag}`}`,
      () =>
        Effect.gen(function* () {
          const {
            receiver: { url: receiver },
            token,
            url
          } = yield* startDrivenConsole(server().url)
          const { groundAt } = yield* Effect.promise(() => importTool<Ground>("ground.ts"))
          yield* Effect.promise(() => groundAt(url, token, receiver)({ path: "/{event}" }))
          const folder = yield* Effect.acquireRelease(
            Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-schemathesis-"))),
            (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
          )
          const document = join(folder, "openapi.json")
          yield* Effect.promise(() => writeFile(document, withReceiver(receiver)))
          for (const [index, chosen] of runsOf(tag).entries()) {
            const { code, said } = yield* Effect.promise(() =>
              run(
                program ?? "",
                [
                  ...["run", "openapi.json", "--url", url, ...chosen],
                  ...["--header", `Authorization: Bearer ${token}`],
                  ...["--max-examples", String(inputs), "--seed", String(fuzz.seed)],
                  ...["--phases", "examples,coverage,fuzzing", "--continue-on-failure"],
                  ...["--checks", checks, "--request-timeout", "30", "--no-color"]
                ],
                folder
              )
            )
            process.stderr.write(said.slice(said.indexOf("=== SUMMARY")))
            assert.strictEqual(code, 0, said)
            if (index === 0) assert.notInclude(said, "Authentication failed", said)
          }
        }),
      {},
      limitMs(count, inputs + covering)
    )
})
