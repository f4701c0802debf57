import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Option } from "effect"
import { startMetrics } from "../../src/cli/flags/metrics-flags.ts"
import type { Family } from "../../src/metrics/family.ts"
import { listenText } from "../../src/metrics/listen.ts"
import { serveMetrics } from "../../src/metrics/metrics-server.ts"
import { runAudit } from "../../src/operations/audit/run-audit.ts"
import { readSystemFamilies } from "../../src/operations/status/status-metrics.ts"
import { countingWorker } from "../kit/counted.ts"
import { panelQueries, recordingRules } from "../kit/dashboards.ts"
import {
  deadLetters,
  endpoint,
  eventually,
  lateRetry,
  publishMany,
  quickRetry
} from "../kit/engine.ts"
import type { Prometheus } from "../kit/prometheus.ts"
import { deployed, promtool, startPrometheus, withoutPrometheus } from "../kit/prometheus.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A worker whose numbers are served as `petrel worker --metrics` does. Returns where. */
const servedWorker = Effect.fnUntraced(function* (id: string, isByTenant: boolean) {
  const { metrics, servedAt, started } = yield* startMetrics(
    {
      metrics: Option.some({ host: "127.0.0.1", port: 0 }),
      otlp: Option.none(),
      metricsLabels: isByTenant ? Option.some("tenant") : Option.none()
    },
    id
  )
  const { problems } = yield* countingWorker(id, metrics)
  started(problems)
  return new URL(servedAt ?? "").host
})

/** The system's numbers, served as a console does, and read again each second. */
const servedSystem = Effect.gen(function* () {
  const read = readSystemFamilies({
    ...{ lagMs: 20, repeatedAttempts: 1 },
    sums: { rows: 1, maxRows: 2, together: 0 }
  })
  let families: ReadonlyArray<Family> = yield* read
  const readAgain = Effect.map(read, (next) => {
    families = next
  })
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep("1 second"), Effect.ignore(readAgain)))
  )
  const at = yield* serveMetrics({
    ...{ host: "127.0.0.1", port: 0, problems: () => [] },
    families: () => families
  })
  return listenText(at)
})

/** Endpoints that take all, fail now and then, refuse, limit the rate, and are not there. */
const load = Effect.gen(function* () {
  const takes = yield* receiver()
  const later = yield* receiver({ answer: byAttempt(503, 200) })
  const limits = yield* receiver({ answer: byAttempt(429, 200) })
  const refuses = yield* receiver({ answer: { status: 400 } })
  const held = yield* receiver({ answer: () => new Promise(() => undefined) })
  yield* endpoint({ id: "takes", url: takes.url })
  yield* endpoint({ id: "later", url: later.url })
  yield* endpoint({ id: "limits", url: limits.url, retry: quickRetry() })
  yield* endpoint({ id: "refuses", url: refuses.url })
  yield* endpoint({ id: "held", url: held.url, maxInFlight: 1, retry: lateRetry })
  yield* endpoint({
    ...{ id: "nowhere", url: "http://127.0.0.1:9/" },
    ...{ retry: quickRetry({ maxAttempts: 3 }), circuit: { failures: 5, rate: "none" } }
  })
})

/** Waits until all queries have values. Fails with the names of those that get none. */
const haveValues = Effect.fnUntraced(function* (
  query: Prometheus["query"],
  queries: ReadonlyArray<{ readonly title: string; readonly query: string }>
) {
  let missing: ReadonlyArray<(typeof queries)[number]> = queries
  const look = Effect.gen(function* () {
    const found = yield* Effect.forEach(missing, (one) => query(one.query), { concurrency: 4 })
    missing = missing.filter((_, at) => found[at]?.length === 0)
    return missing
  })
  yield* Effect.timeoutOption(
    eventually(look, ({ length }) => length === 0),
    "35 seconds"
  )
  assert.deepStrictEqual(missing, [])
})

const said = withoutPrometheus === undefined ? "" : ` (${withoutPrometheus})`

describe.skipIf(withoutPrometheus !== undefined)(`Prometheus${said}`, () => {
  scenario(
    "finds no fault with the metrics and rules, and has data for each rule and each panel",
    () =>
      Effect.gen(function* () {
        yield* load
        const plain = yield* servedWorker("plain", false)
        const byTenant = yield* servedWorker("by-tenant", true)
        yield* publishMany(20, "first")
        yield* eventually(deadLetters, ({ length }) => length > 0)
        yield* runAudit({})
        const system = yield* servedSystem
        let published = 0
        const publishOn = Effect.suspend(() => publishMany(5, `n${published++}`))
        yield* Effect.forkScoped(
          Effect.forever(Effect.andThen(publishOn, Effect.sleep("200 millis")))
        )

        const files = ["petrel.rules.yml", "petrel.alerts.yml"]
        const checked = promtool([
          "check",
          "rules",
          ...files.map((name) => join(deployed, "prometheus", name))
        ])
        assert.strictEqual(checked.code, 0, checked.text)
        const config = promtool(["check", "config", join(deployed, "prometheus/prometheus.yml")])
        assert.strictEqual(config.code, 0, config.text)
        for (const host of [plain, byTenant, system]) {
          const text = yield* Effect.promise(async () =>
            (await fetch(`http://${host}/metrics`)).text()
          )
          const { code, text: faults } = promtool(["check", "metrics"], text)
          assert.deepStrictEqual({ code, faults }, { code: 0, faults: "" })
        }

        const { query } = yield* startPrometheus([plain, byTenant], [system])
        yield* haveValues(query, [{ title: "a scrape of all three", query: "sum(up) == 3" }])
        yield* haveValues(query, [
          ...recordingRules.map((name) => ({ title: "a rule", query: name })),
          ...panelQueries
        ])
        yield* endpoint({
          ...{ id: "nowhere-later", url: "http://127.0.0.1:9/", retry: lateRetry },
          circuit: { failures: 5, rate: "none" }
        })
        const alert = 'ALERTS{alertname="PetrelCircuitTripped",alertstate="firing"}'
        yield* haveValues(query, [{ title: "an alert that a circuit opened", query: alert }])
      }),
    { partitions: 4 },
    // Prometheus scrapes first some 6 s after its start, and rules of rules need several scrapes.
    120_000
  )
})
