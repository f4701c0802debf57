import { spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { startDrivenConsole } from "../kit/driven-console.ts"
import { importTool } from "../kit/openapi-tools.ts"
import { onServer } from "../kit/scenario.ts"

/** Where the program is; `npm run fuzz` installs it. */
const program = process.env.PETREL_SCHEMATHESIS
const inputs = process.env.PETREL_FUZZ_INPUTS ?? "25"
const seed = process.env.PETREL_FUZZ_SEED ?? "20261123"

/** How long it may take, ms. */
const withinMs = 1_500_000

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

describe.skipIf(program === undefined)("schemathesis, with the OpenAPI document", () => {
  const { scenario, server } = onServer()
  scenario(
    "finds no answer that is not as documented",
    () =>
      Effect.gen(function* () {
        const { receiver, token, url } = yield* startDrivenConsole(server().url)
        const { groundAt } = yield* Effect.promise(() => importTool<Ground>("ground.ts"))
        yield* Effect.promise(() => groundAt(url, token, receiver)({ path: "/{event}" }))
        const folder = yield* Effect.acquireRelease(
          Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-schemathesis-"))),
          (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
        )
        yield* Effect.promise(() => writeFile(join(folder, "openapi.json"), withReceiver(receiver)))
        // It finds its own token in a list, and may revoke it: that comes last.
        for (const chosen of [
          ["--exclude-operation-id", "tokens.revoke", "--exclude-operation-id", "deliveries.live"],
          ["--include-operation-id", "tokens.revoke"]
        ]) {
          const { code, said } = yield* Effect.promise(() =>
            run(
              program ?? "",
              [
                ...["run", "openapi.json", "--url", url, ...chosen],
                ...["--header", `Authorization: Bearer ${token}`],
                ...["--max-examples", inputs, "--seed", seed, "--checks", checks],
                ...["--phases", "examples,coverage,fuzzing", "--continue-on-failure"],
                ...["--request-timeout", "30", "--no-color"]
              ],
              folder
            )
          )
          process.stderr.write(said.slice(said.indexOf("=== SUMMARY")))
          assert.strictEqual(code, 0, said)
          if (chosen[0] === "--exclude-operation-id")
            assert.notInclude(said, "Authentication failed", said)
        }
      }),
    {},
    withinMs
  )
})
