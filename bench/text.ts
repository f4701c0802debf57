/* The text output of a scenario. */
import type { Environment } from "./environment.ts"
import { cores } from "./machine.ts"
import type { Figure, Outcome, Row, Scenario, Sides } from "./scenario.ts"
import { defaultSides } from "./scenario.ts"
import type { Summary, UseLine } from "./summary.ts"

type Figures = Scenario["figures"]

const number = (value: number, figure: Figure | undefined) =>
  value.toLocaleString("en", {
    minimumFractionDigits: figure?.digits ?? 0,
    maximumFractionDigits: figure?.digits ?? 0
  })

const withUnit = (value: number, figure: Figure | undefined) =>
  figure === undefined || figure.unit === ""
    ? number(value, figure)
    : `${number(value, figure)}${figure.unit.startsWith("/") || figure.unit === "%" ? "" : " "}${figure.unit}`

/** Returns one round as one line. */
export const rowText = (figures: Figures, row: Row): string => {
  const all = Object.entries(figures).flatMap(([key, figure]) => {
    const value = row.figures[key]
    return value === undefined ? [] : [`${figure.title} ${withUnit(value, figure)}`]
  })
  return `  ${row.of}, round ${row.round}: ${all.join(", ")}`
}

const percent = (share: number) => `${(share * 100).toFixed(0)}%`

const useText = ({ idle, of, others, processes, side }: UseLine, sides: Sides): string => {
  const each = Object.entries({ ...processes, others, idle })
    .filter(([, share]) => share >= 0.005)
    .map(([name, share]) => `${name} ${percent(share)}`)
  return `  ${of}, ${sides[side]}: ${each.join(", ")}`
}

const table = (figures: Figures, { lines }: Summary): ReadonlyArray<string> => {
  const cells = lines.map((line) => {
    const figure = figures[line.figure]
    const unit = figure === undefined || figure.unit === "" ? "" : `, ${figure.unit}`
    return {
      of: line.of,
      title: `${figure?.title ?? line.figure}${unit}`,
      values: [line.min, line.median, line.max].map((value) => number(value, figure))
    }
  })
  const wide = Math.max(...cells.map(({ title }) => title.length), 0) + 4
  const column = Math.max(...cells.flatMap(({ values }) => values.map((v) => v.length)), 6) + 2
  const heads = ["min", "median", "max"].map((head) => head.padStart(column)).join("")
  const out: Array<string> = []
  let of: string | undefined
  for (const cell of cells) {
    if (cell.of !== of) out.push(`  ${cell.of}`.padEnd(wide) + (of === undefined ? heads : ""))
    of = cell.of
    out.push(`    ${cell.title}`.padEnd(wide) + cell.values.map((v) => v.padStart(column)).join(""))
  }
  return out
}

const settingsText = (settings: Outcome["settings"]) =>
  Object.entries(settings)
    .map(([name, value]) => `${name} ${value.toLocaleString("en")}`)
    .join(", ")

const shares = `  who took how much (100% is a core of the machine's ${cores}, which they share):`

/** Returns all results of a scenario. */
export const summaryText = (
  { figures, sides = defaultSides }: Scenario,
  { notes = [], settings }: Outcome,
  summary: Summary
): string => {
  const aims = summary.aims.map(({ atLeast, atMost, figure, median, met, of }) => {
    const bound = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`
    const title = figures[figure]?.title ?? figure
    return `  aim of ${of}: ${title} ${bound}: ${met ? "met" : "missed"} (${withUnit(median, figures[figure])})`
  })
  return [
    "",
    ...table(figures, summary),
    `  with: ${settingsText(settings)}`,
    ...(summary.machine.length === 0 ? [] : [shares]),
    ...summary.machine.map((line) => `  ${useText(line, sides)}`),
    ...aims,
    ...notes.map((note) => `  note: ${note}`),
    ...summary.warnings.map((warning) => `  WARNING ${warning}`),
    ""
  ].join("\n")
}

export const environmentText = (found: Environment): string =>
  `Petrel ${found.petrel}, from its ${found.from}; Node ${found.node}, nats-server ${found.natsServer}, undici ${found.undici}; ${found.system}, ${found.cores} cores (${found.cpu}), ${found.memoryGiB} GiB. Receiver, load, broker and workers are processes of their own on this machine.`
