import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { deployed } from "./prometheus.ts"

interface PanelJson {
  readonly title: string
  readonly type: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}

interface DashboardJson {
  readonly title: string
  readonly panels: ReadonlyArray<PanelJson>
}

const directory = join(deployed, "grafana")

/** The deployed dashboards, as text and parsed. */
export const dashboards = readdirSync(directory)
  .filter((name) => name.endsWith(".json"))
  .map((name) => {
    const text = readFileSync(join(directory, name), "utf8")
    const dashboard: DashboardJson = JSON.parse(text)
    return { name, text, dashboard }
  })

/** All queries of the dashboards, as Grafana sends them. */
export const panelQueries = dashboards.flatMap(({ dashboard }) =>
  dashboard.panels.flatMap(({ targets = [], title }) =>
    targets.map(({ expr }) => ({
      title: `${dashboard.title} / ${title}`,
      query: expr.replaceAll(/\$__(rate_interval|range)/g, "1m").replaceAll("$tenant", "acme")
    }))
  )
)

const rulesIn = (file: string, key: string): ReadonlyArray<string> => {
  const text = readFileSync(join(deployed, "prometheus", file), "utf8")
  return Array.from(text.matchAll(new RegExp(`- ${key}: (\\S+)`, "g")), ([, name = ""]) => name)
}

/** Names of all recording rules. */
export const recordingRules = rulesIn("petrel.rules.yml", "record")
/** Names of all alerting rules. */
export const alertingRules = rulesIn("petrel.alerts.yml", "alert")
