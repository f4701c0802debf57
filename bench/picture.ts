import { parse, View } from "vega"
import type { TopLevelSpec } from "vega-lite"
import { compile } from "vega-lite"

/** Renders a Vega-Lite specification as SVG on white. */
export const picture = async (spec: TopLevelSpec): Promise<string> => {
  const { spec: drawn } = compile({ background: "white", padding: 12, ...spec })
  return await new View(parse(drawn), { renderer: "none" }).toSVG()
}
