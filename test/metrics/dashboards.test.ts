import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { GatewayCounts } from "../../src/intake/gateway/counts.ts"
import { prometheusName } from "../../src/metrics/prometheus-text.ts"
import { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"
import { systemFamilies } from "../../src/operations/status/status-metrics.ts"
import { statusOf } from "../../src/operations/status/status-report.ts"
import { alertingRules, dashboards, panelQueries, recordingRules } from "../kit/dashboards.ts"
import { deployed } from "../kit/prometheus.ts"
import { busy, now } from "../operations/status/surveys.ts"

const root = join(import.meta.dirname, "../..")

/** Checks that values have types. Returns what the compiler says. */
const compiled = (source: string): string => {
  const directory = join(root, "node_modules/.cache/petrel-dashboards")
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, "dashboards.ts"), source)
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--types", "node"]
  const how = ["--module", "nodenext", "--target", "es2024", "--lib", "es2024,dom"]
  try {
    const tsc = join(root, "node_modules/.bin/tsc")
    const args = ["--ignoreConfig", ...options, ...how, join(directory, "dashboards.ts")]
    return execFileSync(tsc, args, { cwd: directory, encoding: "utf8" })
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** In JSON the value of an enum is its text. */
const json = `type Text<T extends string> = \`\${T}\`
type Json<T> = T extends string ? Text<T> : T extends object ? { [K in keyof T]: Json<T[K]> } : T`

const declared = (texts: ReadonlyArray<string>) =>
  [
    'import type { Dashboard } from "@grafana/schema"',
    json,
    ...texts.map((text, at) => `export const d${at}: Json<Dashboard> = ${text}`)
  ].join("\n")

describe("the dashboards", () => {
  it("are two, each with queries", () => {
    assert.deepStrictEqual(
      dashboards.map(({ name }) => name),
      ["petrel-operators.json", "petrel-owner.json"]
    )
    for (const { dashboard } of dashboards) assert.isAbove(dashboard.panels.length, 10)
    assert.isAbove(panelQueries.length, 50)
  })

  it("conform to Grafana's types of a dashboard", () => {
    assert.strictEqual(compiled(declared(dashboards.map(({ text }) => text))), "")
    assert.notStrictEqual(compiled(declared(['{ "panels": [{ "type": 5 }] }'])), "")
  })

  it("name only recording rules that exist", () => {
    const named = panelQueries.flatMap(({ query }) => query.match(/petrel:[\w:]+/g) ?? [])
    assert.isAbove(named.length, 20)
    assert.deepStrictEqual(
      named.filter((name) => !recordingRules.includes(name)),
      []
    )
  })
})

describe("docs/operate/metrics.md", () => {
  const text = readFileSync(join(root, "docs/operate/metrics.md"), "utf8")

  it("tells of each recording rule and each alert", () => {
    const untold = [...recordingRules, ...alertingRules].filter((name) => !text.includes(name))
    assert.deepStrictEqual(untold, [])
  })

  it("tells of each metric that a worker, a gateway or the system has", () => {
    const system = systemFamilies({
      ...{ status: statusOf(busy), alerts: [] },
      audit: { at: now, verdict: "clean", problems: 0 },
      projection: {
        ...{ lagMs: 0, repeatedAttempts: 0 },
        sums: { rows: 0, maxRows: 0, together: 0 }
      }
    })
    const own = [...new WorkerMetrics().families(), ...new GatewayCounts().families()]
    const names = [...own, ...system].map(prometheusName)
    assert.isAbove(names.length, 30)
    assert.deepStrictEqual(
      names.filter((name) => !text.includes(`\`${name}\``)),
      []
    )
  })

  it("tells of each metric that a rule or a dashboard uses", () => {
    const files = ["petrel.rules.yml", "petrel.alerts.yml"]
    const rules = files.map((name) => readFileSync(join(deployed, "prometheus", name), "utf8"))
    const used = [...rules, ...panelQueries.map(({ query }) => query)]
      .join("\n")
      .matchAll(/\b(?:petrel|process)_[a-z_]+\b/g)
    const names = new Set(Array.from(used, ([name]) => name.replace(/_(bucket|sum|count)$/, "")))
    assert.isAbove(names.size, 25)
    assert.deepStrictEqual(
      [...names].filter((name) => !text.includes(name)),
      []
    )
  })
})
