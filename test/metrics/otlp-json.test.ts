import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { otlpMetrics } from "../../src/metrics/otlp-json.ts"
import { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"

/** Generated from the published proto definitions of OTLP. */
interface MessageType {
  readonly verify: (message: object) => string | null
  readonly fromObject: (message: object) => object
  readonly encode: (message: object) => { readonly finish: () => Uint8Array }
  readonly decode: (bytes: Uint8Array) => object
  readonly toObject: (message: object, options: object) => Record<string, never>
}

const request: MessageType = createRequire(import.meta.url)(
  "@opentelemetry/otlp-proto-exporter-base/build/src/generated/root.js"
).opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest

const source = {
  resource: { "service.name": "petrel-worker", "service.instance.id": "w1" },
  version: "1.2.3",
  startedAt: 1_800_000_000_000,
  at: 1_800_000_060_000.5
}

const success: Fact = {
  ...{ v: 1, kind: "delivered", at: 1_800_000_000_300, tenant: "acme", endpoint: "hook" },
  ...{ eventAt: 1_800_000_000_000, eventSeq: 1, round: "0", attempt: 1 },
  ...{ durationMs: 100, status: 200 }
}

/** What a receiver that knows the definitions makes of the JSON. */
const decoded = (body: object) => {
  const json: Record<string, never> = JSON.parse(JSON.stringify(body))
  const message = request.decode(request.encode(request.fromObject(json)).finish())
  return request.toObject(message, { longs: String, enums: Number, arrays: false })
}

const withMetrics = () => {
  const metrics = new WorkerMetrics()
  metrics.stored(success)
  const byHost = () => new Map([["hooks.example", 7]])
  const byTenant = () => [{ tenant: "acme", requests: 7, waiting: 0 }]
  const load = { requests: 7, slowRequests: 2, maxRequests: 1_024, partitions: 8, connections: 9 }
  metrics.load = () => ({ ...load, byHost, byTenant })
  return otlpMetrics(metrics.families(), source)
}

const metricsIn = (request: object): ReadonlyArray<Record<string, never>> => {
  const {
    resourceMetrics: [resource]
  } = request as never as { resourceMetrics: [{ scopeMetrics: [{ metrics: [] }] }] }
  return resource.scopeMetrics[0].metrics
}

describe("otlpMetrics", () => {
  it("has all its fields in the published definitions, by name and by type", () => {
    const body = withMetrics()
    const json = JSON.parse(JSON.stringify(body))
    assert.deepStrictEqual(decoded(body), json)
  })

  it("has a counter as a monotonic cumulative sum since the start", () => {
    const [ended] = metricsIn(decoded(withMetrics())).filter(
      ({ name }) => name === "petrel.deliveries.ended"
    )
    assert.deepInclude(ended as object, {
      unit: "1",
      description: "Rounds of deliveries that ended."
    })
    const { sum } = ended as never as { sum: { dataPoints: ReadonlyArray<object> } }
    assert.deepInclude(sum as object, { aggregationTemporality: 2, isMonotonic: true })
    assert.deepStrictEqual(sum.dataPoints[0], {
      attributes: [
        { key: "end", value: { stringValue: "delivered" } },
        { key: "reason", value: { stringValue: "" } }
      ],
      startTimeUnixNano: "1800000000000000000",
      timeUnixNano: "1800000060000500000",
      asDouble: 1
    })
  })

  it("has a histogram whose counts are not cumulative, in seconds", () => {
    const [delay] = metricsIn(decoded(withMetrics())).filter(
      ({ name }) => name === "petrel.queue.delay"
    )
    const { histogram, unit } = delay as never as {
      unit: string
      histogram: {
        aggregationTemporality: number
        dataPoints: [{ count: string; sum: number; bucketCounts: []; explicitBounds: [] }]
      }
    }
    const [point] = histogram.dataPoints
    assert.strictEqual(unit, "s")
    assert.strictEqual(histogram.aggregationTemporality, 2)
    assert.strictEqual(point.count, "1")
    assert.closeTo(point.sum, 0.2, 1e-9)
    assert.lengthOf(point.bucketCounts, point.explicitBounds.length + 1)
    assert.strictEqual(point.bucketCounts.filter((count) => count === "1").length, 1)
  })

  it("has a gauge without temporality, and whose resource it is", () => {
    const body = decoded(withMetrics())
    const [requests] = metricsIn(body).filter(({ name }) => name === "petrel.inflight.requests")
    const { gauge } = requests as never as { gauge: { dataPoints: [{ asDouble: number }] } }
    assert.strictEqual(gauge.dataPoints[0].asDouble, 7)
    const text = JSON.stringify(body)
    assert.include(text, '{"key":"service.name","value":{"stringValue":"petrel-worker"}}')
    assert.include(text, '{"name":"petrel","version":"1.2.3"}')
  })

  it("leaves out metrics without values", () => {
    const names = metricsIn(withMetrics()).map(({ name }) => name)
    assert.notInclude(names, "petrel.rate_limited.attempts")
  })
})
