/* A scenario's results as files: figures and a chart. */
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { chart } from "./chart.ts"
import type { Environment } from "./environment.ts"
import { picture } from "./picture.ts"
import type { Outcome, Row, Scenario, Settings } from "./scenario.ts"
import type { Summary } from "./summary.ts"

/** Returns a scenario's settings and results. */
export const resultOf = (
  { figures, limit, measures, name }: Scenario,
  { quick }: Settings,
  environment: Environment,
  begun: Date,
  rows: ReadonlyArray<Row>,
  outcome: Outcome,
  summary: Summary
) => {
  const { details, notes, settings } = outcome
  const seconds = Math.round((Date.now() - begun.getTime()) / 1000)
  const ran = { date: begun.toISOString(), seconds, quick, environment, settings }
  return {
    ...{ scenario: name, measures, limit, ...ran, figures, ...summary },
    ...(notes === undefined ? {} : { notes }),
    rows,
    ...(details === undefined ? {} : { details })
  }
}

type Result = ReturnType<typeof resultOf>

/** The figures of a quick run are rough: they are stored separately and not committed. */
const directory = (quick: boolean) =>
  fileURLToPath(new URL(quick ? "results/quick/" : "results/", import.meta.url))

/** Writes both files. Returns the path of the figures. */
export const writeResult = async (
  scenario: Scenario,
  result: Result,
  outcome: Outcome,
  summary: Summary
): Promise<string> => {
  const { cores, cpu, natsServer, node } = result.environment
  const how = result.quick ? "a quick run, rough; " : ""
  const subtitle = `${how}${cores} cores shared by all (${cpu}), Node ${node}, nats-server ${natsServer}, ${result.date.slice(0, 10)}`
  const title = { text: scenario.measures, subtitle, anchor: "start" } as const
  const svg = await picture({ ...(outcome.picture ?? chart(scenario, summary)), title })
  const path = directory(result.quick)
  mkdirSync(path, { recursive: true })
  writeFileSync(`${path}${scenario.name}.json`, `${JSON.stringify(result, null, 1)}\n`)
  writeFileSync(`${path}${scenario.name}.svg`, svg)
  return `${path}${scenario.name}.json`
}
