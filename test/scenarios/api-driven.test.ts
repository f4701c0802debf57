import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import type { Broker } from "../../src/broker/broker.ts"
import { fillQuarantine, startDrivenConsole } from "../kit/driven-console.ts"
import {
  type Driven,
  enoughInputs,
  fuzz,
  groups,
  isFuzzed,
  isMostlyRefused,
  limitMs,
  lineOf,
  operationCount,
  succeeded
} from "../kit/fuzz.ts"
import { isLong } from "../kit/long.ts"
import { importTool } from "../kit/openapi-tools.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario, server } = onServer()

interface Timed extends Driven {
  readonly slowestMs: number
  /** Why inputs were refused as invalid, and how many for each reason. */
  readonly refused: Readonly<Record<string, number>>
}

interface Report {
  readonly driven: ReadonlyArray<Timed>
  readonly mutations: Timed
  readonly findings: ReadonlyArray<object>
}

/** What drives a console (tools/openapi/drive.ts). Its types are checked there. */
interface Driver {
  readonly drive: (options: object) => Promise<Report>
}

interface Ground {
  readonly hintsFor: (receiver: string) => object
  readonly groundAt: (
    url: string,
    token: string,
    receiver: string
  ) => (operation: object, isChanged: boolean) => Promise<object>
}

/** Inputs of each operation; `npm run fuzz` has more. */
const inputs = fuzz.inputs ?? (isLong ? 3 : 1)
/** Wrong inputs of each operation. */
const mutations = Math.ceil((fuzz.mutations ?? (isLong ? 150 : 80)) / operationCount)
const seed = fuzz.seed

/** Says why inputs were refused that the document allows, most of them first. */
const reasons = ({ refused }: Timed): string =>
  Object.entries(refused)
    .toSorted(([, a], [, b]) => b - a)
    .map(([why, count]) => `  ${count} × ${why}\n`)
    .join("")

const line = (one: Timed): string => `slowest ${one.slowestMs} ms of ${lineOf(one)}`

const shown = ({ driven, findings, mutations }: Report): string =>
  `${driven.map((one) => line(one) + reasons(one)).join("")}${line(mutations)}${findings.length} findings\n`

describe("every operation, asked for by a client of the OpenAPI document", () => {
  for (const { count, tag } of groups)
    scenario(
      `answers as the document says, whatever it is given${tag === undefined ? "" : `: ${tag}`}`,
      () =>
        Effect.gen(function* () {
          const {
            receiver: { url: receiver },
            token,
            url
          } = yield* startDrivenConsole(server().url)
          const { drive } = yield* Effect.promise(() => importTool<Driver>("drive.ts"))
          const { groundAt, hintsFor } = yield* Effect.promise(() =>
            importTool<Ground>("ground.ts")
          )
          const found = groundAt(url, token, receiver)
          const run = Effect.runPromiseWith(yield* Effect.context<Broker>())
          const known = async (operation: object, isChanged: boolean) => {
            if (isChanged) await run(fillQuarantine)
            return found(operation, isChanged)
          }
          const report = yield* Effect.promise(() =>
            drive({
              ...{ url, token, document: apiDocument(), tag, inputs, mutations, seed },
              hints: hintsFor(receiver),
              known
            })
          )
          if (isFuzzed) process.stderr.write(shown(report))
          assert.deepStrictEqual(report.findings, [])
          assert.strictEqual(report.driven.length, count)
          for (const one of report.driven) {
            const { operation, inputs: sent, statuses } = one
            assert.strictEqual(sent, inputs, operation)
            // Of few inputs all may be refused.
            if (inputs < enoughInputs) continue
            assert.isTrue(
              succeeded(statuses),
              `${operation} never succeeded: ${JSON.stringify(statuses)}`
            )
            // Else most of its inputs try nothing but its first check.
            assert.isFalse(
              isMostlyRefused(one),
              `${operation} refused most as invalid: ${reasons(one)}`
            )
          }
        }),
      {},
      limitMs(count, inputs + mutations)
    )
})
