/* The picture of a scenario that has none of its own. */
import type { TopLevelSpec } from "vega-lite"
import type { Scenario } from "./scenario.ts"
import type { Summary } from "./summary.ts"

/** Petrel's, and that of what it is compared with. */
export const colors = { petrel: "#d9480f", limit: "#9aa5b1" }
export const sideColor = {
  field: "side",
  type: "nominal",
  title: null,
  scale: { domain: Object.keys(colors), range: Object.values(colors) }
} as const

type Panel = Extract<TopLevelSpec, { vconcat: unknown }>["vconcat"][number]

const panelOf = (panel: string, { figures }: Scenario, { lines }: Summary): Panel => {
  const values = lines.flatMap(({ figure: key, max, median, min, of }) => {
    const figure = figures[key]
    return figure?.panel === panel ? [{ of, side: figure.side ?? "petrel", min, median, max }] : []
  })
  const y = { field: "of", type: "nominal", title: null, sort: null } as const
  const yOffset = { field: "side", type: "nominal", sort: null } as const
  return {
    data: { values },
    width: 520,
    height: { step: 18 },
    title: { text: panel, anchor: "start", fontSize: 11, fontWeight: "normal" },
    encoding: { y, yOffset },
    layer: [
      {
        mark: { type: "bar", tooltip: null },
        encoding: {
          x: { field: "median", type: "quantitative", title: null },
          color: sideColor
        }
      },
      {
        mark: { type: "rule", strokeWidth: 1.5 },
        encoding: { x: { field: "min", type: "quantitative" }, x2: { field: "max" } }
      },
      {
        mark: { type: "text", align: "left", dx: 5, fontSize: 10 },
        encoding: {
          x: { field: "max", type: "quantitative" },
          text: { field: "median", type: "quantitative", format: ",.3~r" }
        }
      }
    ]
  }
}

/** Medians as bars, from the least to the most as a line; a panel for each quantity. */
export const chart = (scenario: Scenario, summary: Summary, subtitle: string): TopLevelSpec => {
  const panels = Object.values(scenario.figures).flatMap(({ panel }) => panel ?? [])
  const used = [...new Set(panels)].filter((panel) =>
    summary.lines.some(({ figure }) => scenario.figures[figure]?.panel === panel)
  )
  return {
    title: { text: scenario.measures, subtitle, anchor: "start" },
    vconcat: used.map((panel) => panelOf(panel, scenario, summary))
  }
}
