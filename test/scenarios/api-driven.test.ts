import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { startDrivenConsole } from "../kit/driven-console.ts"
import { importTool } from "../kit/openapi-tools.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario, server } = onServer()

interface Driven {
  readonly operation: string
  readonly inputs: number
  readonly statuses: Readonly<Record<string, number>>
  readonly slowestMs: number
}

interface Report {
  readonly driven: ReadonlyArray<Driven>
  readonly mutations: Driven
  readonly findings: ReadonlyArray<object>
}

/** What drives a console (tools/openapi/drive.ts). Its types are checked there. */
interface Driver {
  readonly drive: (options: object) => Promise<Report>
}

interface Ground {
  readonly hintsFor: (receiver: string) => object
  readonly groundAt: (url: string, token: string, receiver: string) => unknown
}

/** Inputs of each operation; `npm run fuzz` has more. */
const inputs = Number(process.env.PETREL_FUZZ_INPUTS ?? 6)
/** Of so many some are right. */
const enoughInputs = 100
const mutations = Number(process.env.PETREL_FUZZ_MUTATIONS ?? 150)
const seed = Number(process.env.PETREL_FUZZ_SEED ?? 20_261_123)

const line = ({ inputs, operation, slowestMs, statuses }: Driven): string => {
  const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
  return `${operation}: ${inputs} inputs, ${answers.join(", ")}; slowest ${slowestMs} ms\n`
}

const shown = ({ driven, findings, mutations }: Report): string =>
  `${[...driven, mutations].map(line).join("")}${findings.length} findings\n`

describe("every operation, asked for by a client of the OpenAPI document", () => {
  scenario(
    "answers as the document says, whatever it is given",
    () =>
      Effect.gen(function* () {
        const { receiver, token, url } = yield* startDrivenConsole(server().url)
        const { drive } = yield* Effect.promise(() => importTool<Driver>("drive.ts"))
        const { groundAt, hintsFor } = yield* Effect.promise(() => importTool<Ground>("ground.ts"))
        const report = yield* Effect.promise(() =>
          drive({
            ...{ url, token, document: apiDocument(), inputs, mutations, seed },
            hints: hintsFor(receiver),
            known: groundAt(url, token, receiver)
          })
        )
        if (process.env.PETREL_FUZZ_SHOW !== undefined) process.stderr.write(shown(report))
        assert.deepStrictEqual(report.findings, [])
        for (const { operation, inputs: sent, statuses } of report.driven) {
          assert.strictEqual(sent, inputs, operation)
          // Of few inputs all may be refused.
          if (inputs < enoughInputs) continue
          const succeeded = Object.keys(statuses).some((status) => status.startsWith("2"))
          assert.isTrue(succeeded, `${operation} never succeeded: ${JSON.stringify(statuses)}`)
        }
      }),
    {},
    600_000
  )
})
