import type { Family, HistogramSample, Labels, NumberSample } from "./family.ts"
import { noLabels } from "./family.ts"

/** Content type of the text format. */
export const prometheusContentType = "text/plain; version=0.0.4; charset=utf-8"

const suffixes = { s: "_seconds", By: "_bytes" } as const

/** Returns the name that Prometheus gives a metric: with its unit, and `_total` for a counter. */
export const prometheusName = ({ name, type, unit }: Pick<Family, "name" | "type" | "unit">) => {
  const base = name.replaceAll(".", "_")
  const suffix = unit === undefined || base.endsWith(suffixes[unit]) ? "" : suffixes[unit]
  return `${base}${suffix}${type === "counter" ? "_total" : ""}`
}

const escaped = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const pairsOf = (labels: Labels): string => {
  let text = ""
  for (const name in labels)
    text += `${text === "" ? "" : ","}${name}="${escaped(labels[name] ?? "")}"`
  return text
}

const withLabels = (name: string, pairs: string): string =>
  pairs === "" ? name : `${name}{${pairs}}`

/** What the lines of a sample begin with. */
const beginningsOf = (name: string, sample: NumberSample | HistogramSample): Array<string> => {
  const pairs = pairsOf(sample.labels)
  if (!("bounds" in sample)) return [`${withLabels(name, pairs)} `]
  const before = pairs === "" ? "" : `${pairs},`
  return [
    ...[...sample.bounds, "+Inf"].map((bound) => `${name}_bucket{${before}le="${bound}"} `),
    `${withLabels(`${name}_sum`, pairs)} `,
    `${withLabels(`${name}_count`, pairs)} `
  ]
}

/** Labels that belong to one sample live as long as its cells: their text is made once. */
const made = new WeakMap<Labels, ReadonlyArray<string>>()

const beginnings = (name: string, sample: NumberSample | HistogramSample) => {
  const { labels } = sample
  if (labels === noLabels) return beginningsOf(name, sample)
  const known = made.get(labels)
  if (known !== undefined) return known
  const texts = beginningsOf(name, sample)
  made.set(labels, texts)
  return texts
}

const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? "+Inf" : String(value)

const histogramLines = (name: string, sample: HistogramSample): string => {
  const { bounds, counts, sum } = sample
  const texts = beginnings(name, sample)
  let text = ""
  let count = 0
  for (let at = 0; at <= bounds.length; at++) {
    count += counts[at] ?? 0
    text += `${texts[at]}${count}\n`
  }
  return `${text}${texts[bounds.length + 1]}${numberText(sum)}\n${texts[bounds.length + 2]}${count}\n`
}

/** Formats metrics as Prometheus's text format, version 0.0.4. */
export const prometheusText = (families: ReadonlyArray<Family>): string => {
  let text = ""
  for (const family of families) {
    const name = prometheusName(family)
    const help = family.help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${family.type}\n`
    if (family.type === "histogram")
      for (const sample of family.samples) text += histogramLines(name, sample)
    else
      for (const sample of family.samples)
        text += `${beginnings(name, sample)[0]}${numberText(sample.value)}\n`
  }
  return text
}
