/*
 * `npm run bench`: runs scenarios one after the other, prints their results and writes them to
 * files.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { dist, writePackage } from "../build/package.ts"
import { helpText, Nonsense, readArgs } from "./command-line.ts"
import { type Environment, environment } from "./environment.ts"
import { Program } from "./program.ts"
import { resultOf, writeResult } from "./result.ts"
import type { Row, Scenario, Settings } from "./scenario.ts"
import { scenarios } from "./scenarios.ts"
import { summarize } from "./summary.ts"
import { environmentText, rowText, summaryText } from "./text.ts"

const measure = Effect.fnUntraced(function* (
  scenario: Scenario,
  settings: Settings,
  found: Environment,
  say: (line: string) => void
) {
  const begun = new Date()
  say(`${scenario.name}: ${scenario.measures} ${scenario.limit}`)
  const rows: Array<Row> = []
  const outcome = yield* scenario.run(settings, (row) => {
    rows.push(row)
    say(rowText(scenario.figures, row))
  })
  const summary = summarize(scenario, rows, outcome.aims ?? [])
  say(summaryText(scenario, outcome, summary))
  const result = resultOf(scenario, settings, found, begun, rows, outcome, summary)
  const path = yield* Effect.promise(() => writeResult(scenario, result, outcome, summary))
  say(`  ${result.seconds} s; kept in ${path}\n`)
  return result
}, Effect.scoped)

const asked = (() => {
  try {
    return readArgs(process.argv.slice(2), scenarios)
  } catch (error) {
    if (!(error instanceof Nonsense)) throw error
    process.stderr.write(`bench: ${error.message}\n`)
    process.exit(2)
  }
})()
const { chosen, fromDist, help, json, settings } = asked

const say = (line: string) => (json ? process.stderr : process.stdout).write(`${line}\n`)

const main = Effect.gen(function* () {
  const found = yield* environment(fromDist ? "package" : "sources")
  say(environmentText(found))
  if (settings.quick) say("A quick run: few events, short backlogs, rough figures.")
  say("")
  for (const scenario of chosen) {
    const result = yield* measure(scenario, settings, found, say)
    if (json) process.stdout.write(`${JSON.stringify(result)}\n`)
  }
})

/** Builds the package, so that it has the sources of now. Returns its program. */
const build = Effect.promise(() => writePackage(dist)).pipe(Effect.as(join(dist, "cli/petrel.js")))

if (help) process.stdout.write(helpText(scenarios))
else {
  const stop = new AbortController()
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort())
  const measuring = fromDist ? Effect.provideServiceEffect(main, Program, build) : main
  await Effect.runPromise(measuring, { signal: stop.signal }).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    process.stderr.write(`bench: ${stop.signal.aborted ? "stopped" : why}\n`)
    process.exitCode = 1
  })
}
