import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { attemptSpanId, routingSpanId } from "../../src/domain/trace-context.ts"
import { spansOf, tracedFact } from "../../src/metrics/fact-spans.ts"
import { otlpSpans } from "../../src/metrics/otlp-json.ts"

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const parentId = "00f067aa0ba902b7"
const trace = `00-${traceId}-${parentId}-01`

const eventAt = 1_800_000_000_000
const event = { eventSeq: 7, eventAt }
const delivery = { ...event, tenant: "acme", endpoint: "hook", round: "0" }

const routed: Fact = {
  ...{ v: 1, kind: "routed", at: eventAt + 3, tenant: "acme", endpoint: "_", ...event, trace },
  ...{ event: "inv-1", type: "invoice.paid", worker: "w1" },
  plan: { part: 0, last: true, endpoints: [], skipped: [] }
}

const failed: Fact = {
  ...{ v: 1, kind: "attempt-failed", at: eventAt + 150, ...delivery, trace, worker: "w2" },
  ...{ event: "inv-1", type: "invoice.paid", delivery: "inv-1.hook" },
  ...{ attempt: 1, durationMs: 100.25, status: 503 }
}

const { status: _, ...answerless } = failed
const timedOut: Fact = {
  ...answerless,
  error: { class: "timeout", message: "no answer within 15 s" },
  ...{ attempt: 2, probe: true }
}

const delivered: Fact = { ...failed, kind: "delivered", status: 200, attempt: 3 }
const { plan } = routed

const origin = "https://hooks.example:8443"

const spansIn = (fact: Fact, at: { origin: string | undefined } = { origin }) => {
  const traced = tracedFact(fact)
  return traced === undefined ? [] : spansOf(traced, at.origin)
}

describe("the spans of a fact", () => {
  it("are the routing, from the event to its plan", () => {
    assert.deepStrictEqual(spansIn(routed), [
      {
        ...{ traceId, parentId, spanId: routingSpanId(event), worker: "w1" },
        ...{ name: "route", kind: "consumer", startedAt: eventAt, endedAt: eventAt + 3 },
        attributes: {
          "messaging.system": "nats",
          "messaging.operation.name": "route",
          "messaging.operation.type": "process",
          "messaging.message.id": "inv-1",
          "petrel.tenant": "acme",
          "petrel.event.id": "inv-1",
          "petrel.event.type": "invoice.paid",
          "petrel.endpoints": 0
        }
      }
    ])
  })

  it("are an attempt, below the routing", () => {
    assert.deepStrictEqual(spansIn(failed), [
      {
        ...{ traceId, parentId: routingSpanId(event), spanId: attemptSpanId(delivery, 1) },
        ...{ name: "POST", kind: "client", worker: "w2" },
        ...{ startedAt: eventAt + 49.75, endedAt: eventAt + 150 },
        attributes: {
          "http.request.method": "POST",
          "server.address": "hooks.example",
          "server.port": 8443,
          "url.full": "https://hooks.example:8443/REDACTED",
          "http.response.status_code": 503,
          "error.type": "503",
          "petrel.tenant": "acme",
          "petrel.endpoint": "hook",
          "petrel.event.id": "inv-1",
          "petrel.event.type": "invoice.paid",
          "petrel.delivery": "inv-1.hook",
          "petrel.round": "0",
          "petrel.attempt": 1
        },
        problem: ""
      }
    ])
  })

  it("say how often an attempt repeats another, and why there was no answer", () => {
    const [span] = spansIn(timedOut)
    assert.strictEqual(span?.problem, "no answer within 15 s")
    assert.deepInclude(span?.attributes, {
      "http.request.resend_count": 1,
      "error.type": "timeout",
      "petrel.probe": true
    })
    assert.notProperty(span?.attributes, "http.response.status_code")
    assert.strictEqual(span?.spanId, attemptSpanId(delivery, 2))
  })

  it.each(["delivered", "delivered-late"] as const)("have no problem where it is %s", (kind) => {
    const [span] = spansIn({ ...delivered, kind })
    assert.notProperty(span, "problem")
    assert.notProperty(span?.attributes, "error.type")
    assert.deepInclude(span?.attributes, {
      "http.response.status_code": 200,
      "http.request.resend_count": 2
    })
  })

  it("are both where a success holds the plan: the routing ends as the attempt begins", () => {
    const [routing, attempt, ...others] = spansIn({ ...delivered, attempt: 1, plan })
    assert.lengthOf(others, 0)
    assert.strictEqual(routing?.spanId, routingSpanId(event))
    assert.strictEqual(routing?.endedAt, eventAt + 49.75)
    assert.strictEqual(attempt?.parentId, routingSpanId(event))
  })

  it("never end before they begin, whatever the clocks say", () => {
    const [routing] = spansIn({ ...routed, at: eventAt - 20 })
    assert.strictEqual(routing?.endedAt, eventAt)
  })

  const without: ReadonlyArray<readonly [what: string, fact: Fact]> = [
    ["a trace", { ...failed, trace: undefined }],
    ["a trace that is sampled", { ...failed, trace: `00-${traceId}-${parentId}-00` }],
    ["an event", { ...failed, eventAt: undefined }],
    ["an attempt", { ...failed, kind: "dead-lettered", durationMs: undefined }],
    ["a plan's first part", { ...routed, plan: { ...plan, part: 1 } as Fact["plan"] }],
    ["a plan", { ...routed, plan: undefined }]
  ]
  it.each(without)("are none without %s", (_, fact) => {
    assert.lengthOf(spansIn(fact), 0)
  })

  it("do not count the endpoints of a plan in several parts", () => {
    const [span] = spansIn({ ...routed, plan: { ...plan, last: false } as Fact["plan"] })
    assert.notProperty(span?.attributes, "petrel.endpoints")
  })

  it.each([
    ["https://hooks.example", "hooks.example", 443],
    ["http://hooks.example", "hooks.example", 80],
    ["http://[::1]:8080", "::1", 8080],
    [undefined, undefined, undefined]
  ])("name the receiver of %s", (origin, address, port) => {
    const [span] = spansIn(failed, { origin })
    assert.strictEqual(span?.attributes["server.address"], address)
    assert.strictEqual(span?.attributes["server.port"], port)
  })
})

/** Generated from the published proto definitions of OTLP. */
interface MessageType {
  readonly fromObject: (message: object) => object
  readonly encode: (message: object) => { readonly finish: () => Uint8Array }
  readonly decode: (bytes: Uint8Array) => object
  readonly toObject: (message: object, options: object) => Record<string, never>
}

const request: MessageType = createRequire(import.meta.url)(
  "@opentelemetry/otlp-proto-exporter-base/build/src/generated/root.js"
).opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest

const idNames: ReadonlySet<string> = new Set(["traceId", "spanId", "parentSpanId"])

const recoded = (from: "hex" | "base64", to: "hex" | "base64") => (name: string, value: unknown) =>
  idNames.has(name) ? Buffer.from(String(value), from).toString(to) : value

/** What a receiver that knows the definitions makes of the JSON. */
const decoded = (body: object) => {
  const json = JSON.parse(JSON.stringify(body), recoded("hex", "base64"))
  const message = request.decode(request.encode(request.fromObject(json)).finish())
  const options = { longs: String, enums: Number, bytes: String, arrays: false }
  return JSON.parse(JSON.stringify(request.toObject(message, options)), recoded("base64", "hex"))
}

describe("otlpSpans", () => {
  const source = { resource: { "service.name": "petrel-worker" }, version: "1.2.3" }
  const spans = [routed, failed, timedOut, delivered].flatMap((fact) => [...spansIn(fact)])
  const body = otlpSpans(spans, source)

  it("has all its fields in the published definitions, by name and by type", () => {
    assert.deepStrictEqual(decoded(body), JSON.parse(JSON.stringify(body)))
  })

  it("has spans by worker", () => {
    const { resourceSpans } = decoded(body)
    assert.lengthOf(resourceSpans, 2)
    const [first, second] = resourceSpans
    const text = (value: string) => ({ stringValue: value })
    assert.deepStrictEqual(second.resource.attributes, [
      { key: "service.name", value: text("petrel-worker") },
      { key: "service.instance.id", value: text("w2") }
    ])
    assert.deepStrictEqual(first.scopeSpans[0].scope, { name: "petrel", version: "1.2.3" })
    assert.lengthOf(first.scopeSpans[0].spans, 1)
    assert.lengthOf(second.scopeSpans[0].spans, 3)
  })

  it("has a failed attempt as an error of a client", () => {
    const [, { scopeSpans }] = decoded(body).resourceSpans
    const [, span] = scopeSpans[0].spans
    const { attributes, ...rest } = span
    assert.deepStrictEqual(rest, {
      ...{ traceId, spanId: attemptSpanId(delivery, 2), parentSpanId: routingSpanId(event) },
      ...{ name: "POST", kind: 3 },
      startTimeUnixNano: "1800000000049750000",
      endTimeUnixNano: "1800000000150000000",
      status: { message: "no answer within 15 s", code: 2 }
    })
    assert.deepInclude(attributes, { key: "server.port", value: { intValue: "8443" } })
    assert.deepInclude(attributes, { key: "petrel.probe", value: { boolValue: true } })
  })

  it("has a success without a status, and the routing as a consumer", () => {
    const [first, second] = decoded(body).resourceSpans
    assert.notProperty(second.scopeSpans[0].spans[2], "status")
    assert.strictEqual(first.scopeSpans[0].spans[0].kind, 5)
    assert.strictEqual(first.scopeSpans[0].spans[0].parentSpanId, parentId)
  })
})
