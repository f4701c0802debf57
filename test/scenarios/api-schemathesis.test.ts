import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import type { Broker } from "../../src/broker/broker.ts"
import { fillQuarantine, startDrivenConsole } from "../kit/driven-console.ts"
import { type Driven, enoughInputs, fuzz, groups, limitMs, lineOf, succeeded } from "../kit/fuzz.ts"
import { importTool, toolsFolder } from "../kit/openapi-tools.ts"
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
  ) => (
    operation: Listed,
    isChanged: boolean
  ) => Promise<Readonly<Record<string, ReadonlyArray<string>>>>
}

/** An operation of the document, as far as this story reads it. */
interface Listed {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<unknown>
  readonly requestBody?: unknown
  readonly tags?: ReadonlyArray<string>
  readonly path: string
}

interface Tools {
  readonly operationsOf: (document: unknown) => ReadonlyArray<Listed>
}

const Counted = Schema.fromJsonString(
  Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Finite))
)

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

const run = (
  command: string,
  args: ReadonlyArray<string>,
  cwd: string,
  env: Readonly<Record<string, string>>
) =>
  new Promise<{ readonly code: number | null; readonly said: string }>((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env }
    })
    let said = ""
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        said += chunk.toString("utf8")
      })
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, said }))
  })

/**
 * Driven after the others of their group, each by itself: tokens.revoke may revoke the token that asks,
 * and the others find nothing where several were released or discarded before.
 */
const alone = ["tokens.revoke", "quarantine.get", "quarantine.release", "quarantine.discard"]
/** What is not driven here, and why. */
const excluded: Readonly<Record<string, string>> = {
  "deliveries.live": "its answer never ends, and schemathesis reads answers whole"
}

/**
 * The hooks give ids that are there. Those that schemathesis finds in answers it takes away again once
 * it has deleted them, and then makes few inputs of an operation that deletes: 17 instead of 300.
 */
const ownIdsOnly = "[phases.fuzzing.extra-data-sources]\nresponses = false\n"

/** What is driven one after the other: operations, and the flags that choose them. */
const runsOf = (tag: string | undefined, operations: ReadonlyArray<Listed>) => {
  const chosen = tag === undefined ? [] : ["--include-tag", tag]
  const others = [...alone, ...Object.keys(excluded)]
  const flags = [...chosen, ...others.flatMap((id) => ["--exclude-operation-id", id])]
  return [
    { flags, driven: operations.filter(({ operationId }) => !others.includes(operationId)) },
    ...operations
      .filter(({ operationId }) => alone.includes(operationId))
      .map((one) => ({ flags: ["--include-operation-id", one.operationId], driven: [one] }))
  ]
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
          const { operationsOf } = yield* Effect.promise(() => importTool<Tools>("document.ts"))
          const operations = operationsOf(apiDocument()).filter(
            ({ tags }) => tag === undefined || tags?.includes(tag) === true
          )
          assert.lengthOf(operations, count)
          const find = groundAt(url, token, receiver)
          const fill = Effect.runPromiseWith(yield* Effect.context<Broker>())
          const folder = yield* Effect.acquireRelease(
            Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-schemathesis-"))),
            (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
          )
          const write = (name: string, text: string) =>
            Effect.promise(() => writeFile(join(folder, name), text))
          yield* write("openapi.json", withReceiver(receiver))
          yield* write("schemathesis.toml", ownIdsOnly)
          const driven: Array<Driven> = []
          for (const [index, chosen] of runsOf(tag, operations).entries()) {
            const known: Record<string, object> = {}
            for (const operation of chosen.driven) {
              yield* Effect.promise(() => fill(fillQuarantine))
              known[operation.operationId] = yield* Effect.promise(() => find(operation, true))
            }
            yield* write("known.json", JSON.stringify(known))
            const { code, said } = yield* Effect.promise(() =>
              run(
                program ?? "",
                [
                  ...["run", "openapi.json", "--url", url, ...chosen.flags],
                  ...["--header", `Authorization: Bearer ${token}`],
                  ...["--max-examples", String(inputs), "--seed", String(fuzz.seed)],
                  ...["--phases", "examples,coverage,fuzzing", "--continue-on-failure"],
                  ...["--checks", checks, "--request-timeout", "30", "--no-color"]
                ],
                folder,
                {
                  SCHEMATHESIS_HOOKS: `${toolsFolder}schemathesis_hooks.py`,
                  PETREL_KNOWN: join(folder, "known.json"),
                  PETREL_COUNTED: join(folder, `counted-${index}.json`)
                }
              )
            )
            process.stderr.write(said.slice(said.indexOf("=== SUMMARY")))
            assert.strictEqual(code, 0, said)
            if (index === 0) assert.notInclude(said, "Authentication failed", said)
            const counted = yield* Effect.promise(() =>
              readFile(join(folder, `counted-${index}.json`), "utf8")
            )
            for (const [operation, statuses] of Object.entries(
              Schema.decodeUnknownSync(Counted)(counted)
            )) {
              const sum = Object.values(statuses).reduce((all, one) => all + one, 0)
              driven.push({ operation, inputs: sum, statuses })
            }
          }
          process.stderr.write(driven.map((one) => `schemathesis ${lineOf(one)}`).join(""))
          for (const { operationId } of operations) {
            const why = excluded[operationId]
            if (why !== undefined)
              process.stderr.write(`schemathesis ${operationId}: not driven: ${why}\n`)
          }
          assert.sameMembers(
            driven.map(({ operation }) => operation),
            operations.map(({ operationId }) => operationId).filter((id) => !(id in excluded))
          )
          // Of an operation that takes nothing there is one input.
          const takesNothing = operations
            .filter(({ parameters = [], requestBody }) => !parameters.length && !requestBody)
            .map(({ operationId }) => operationId)
          for (const { inputs: made, operation } of driven)
            if (!takesNothing.includes(operation)) assert.isAtLeast(made, inputs, operation)
          if (inputs < enoughInputs) return
          for (const { operation, statuses } of driven)
            assert.isTrue(succeeded(statuses), `${operation} never succeeded`)
        }),
      {},
      limitMs(count, inputs + covering)
    )
})
