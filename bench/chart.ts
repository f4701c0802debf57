/* The default chart of a scenario. */
import type { TopLevelSpec } from "vega-lite"
import { defaultSides, type Scenario, type Sides } from "./scenario.ts"
import type { Summary } from "./summary.ts"

/** The colors of Petrel and of what it is compared with. */
export const sideColor = ({ limit, petrel }: Sides) =>
  ({
    field: "side",
    type: "nominal",
    title: null,
    scale: { domain: [petrel, limit], range: ["#d9480f", "#9aa5b1"] }
  }) as const

type Panel = Extract<TopLevelSpec, { vconcat: unknown }>["vconcat"][number]

const panelOf = (
  panel: string,
  { figures, sides = defaultSides }: Scenario,
  { lines }: Summary
): Panel => {
  const values = lines.flatMap(({ figure: key, max, median, min, of }) => {
    const figure = figures[key]
    return figure?.panel === panel
      ? [{ of, side: sides[figure.side ?? "petrel"], min, median, max }]
      : []
  })
  const axis = { labelLimit: 400 }
  const y = { field: "of", type: "nominal", title: null, sort: null, axis } as const
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
          color: sideColor(sides)
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

/** Medians as bars, the range from minimum to maximum as a line; a panel for each quantity. */
export const chart = (scenario: Scenario, summary: Summary): TopLevelSpec => {
  const panels = Object.values(scenario.figures).flatMap(({ panel }) => panel ?? [])
  const used = [...new Set(panels)].filter((panel) =>
    summary.lines.some(({ figure }) => scenario.figures[figure]?.panel === panel)
  )
  return {
    vconcat: used.map((panel) => panelOf(panel, scenario, summary)),
    resolve: { scale: { yOffset: "independent" } }
  }
}
