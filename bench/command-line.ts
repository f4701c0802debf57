import { parseArgs } from "node:util"
import type { Scenario, Settings } from "./scenario.ts"
import { loadNames } from "./scenario.ts"

/** The scenarios whose load may be chosen, and what of it. */
const loadOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  "far-behind": loadNames,
  "catching-up": ["events", "endpoints", "body"],
  flood: ["events", "endpoints", "body"]
}

/** The arguments are invalid. The message is one sentence that says what is valid. */
export class Nonsense extends Error {}

export interface Asked {
  readonly help: boolean
  readonly json: boolean
  /** The package of `npm run build` is measured, not the sources. */
  readonly fromDist: boolean
  readonly settings: Settings
  readonly chosen: ReadonlyArray<Scenario>
}

const parse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        scenario: { type: "string", multiple: true, default: [] },
        rounds: { type: "string" },
        events: { type: "string" },
        endpoints: { type: "string" },
        body: { type: "string" },
        failing: { type: "string" },
        quick: { type: "boolean", default: false },
        "from-dist": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false }
      }
    }).values
  } catch (error) {
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/)
    throw new Nonsense(`${why.replace(/\.$/, "")}; --help says what there is.`)
  }
}

const readLoad = (
  given: Readonly<Partial<Record<(typeof loadNames)[number], string>>>
): Settings["load"] =>
  Object.fromEntries(
    loadNames.flatMap((name) => {
      const text = given[name]
      if (text === undefined) return []
      if (!/^[1-9]\d{0,7}$/.test(text))
        throw new Nonsense(`--${name} must be a whole number from 1 to 99999999, not "${text}".`)
      return [[name, Number(text)] as const]
    })
  )

/** Throws {@link Nonsense}. */
export const readArgs = (args: ReadonlyArray<string>, all: ReadonlyArray<Scenario>): Asked => {
  const given = parse(args)
  const { "from-dist": fromDist, help, json, quick, rounds, scenario: names } = given
  const unknown = names.find((name) => !all.some((scenario) => scenario.name === name))
  if (unknown !== undefined)
    throw new Nonsense(
      `there is no scenario "${unknown}"; there are ${all.map(({ name }) => name).join(", ")}.`
    )
  if (rounds !== undefined && !/^[1-9]\d{0,2}$/.test(rounds))
    throw new Nonsense(`--rounds must be a whole number from 1 to 999, not "${rounds}".`)
  const load = readLoad(given)
  const taken = names.length === 1 ? (loadOf[names[0] ?? ""] ?? []) : []
  const refused = Object.keys(load).filter((name) => !taken.includes(name))
  if (refused.length > 0) {
    const scenarios = Object.keys(loadOf).filter((one) =>
      refused.every((name) => loadOf[one]?.includes(name))
    )
    throw new Nonsense(
      `${refused.map((name) => `--${name}`).join(" and ")} only go with --scenario ${scenarios.join(" or ")}, alone.`
    )
  }
  return {
    help,
    json,
    fromDist,
    settings: { quick, rounds: rounds === undefined ? undefined : Number(rounds), load },
    chosen: all.filter(({ name, onlyNamed }) =>
      names.length === 0 ? onlyNamed !== true : names.includes(name)
    )
  }
}

/** Returns the help with all options. */
export const helpText = (all: ReadonlyArray<Scenario>): string => {
  const wide = Math.max(...all.map(({ name }) => name.length)) + 2
  const scenarios = all.map(
    ({ measures, name, onlyNamed }) =>
      `  ${name.padEnd(wide)}${measures}${onlyNamed ? " (Only when named.)" : ""}`
  )
  return [
    "Petrel and its limit in the same run, in turn, with minimum, median and maximum.",
    "",
    "  npm run bench -- [--scenario NAME]… [--rounds N] [--quick] [--from-dist] [--json]",
    "",
    "  --scenario NAME  this one; may be repeated (default: all but those that must be named)",
    "  --rounds N       rounds that count, after one that warms up (default: the scenario's own)",
    "  --events N       of far-behind, catching-up and flood: events (default: 1,000,000 for 3 endpoints; 40 for each; 400,000)",
    "  --endpoints N    of these: endpoints that are down (default: 3; 10,000; 10,000)",
    "  --body BYTES     of these: length of a body (default: 300; 1,024; 300)",
    "  --failing N      of far-behind: instead of being down, every Nth attempt fails",
    "  --quick          everything in a fraction of the time, figures are rougher",
    "  --from-dist      builds the package and measures it instead of the sources",
    "  --json           one JSON object a scenario on stdout; progress goes to stderr",
    "",
    "Results go to bench/results (of quick runs: bench/results/quick), as JSON and SVG.",
    "",
    ...scenarios,
    ""
  ].join("\n")
}
