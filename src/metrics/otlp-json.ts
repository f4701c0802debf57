import type { Span, SpanAttribute } from "./fact-spans.ts"
import type { Family, HistogramSample, Labels, NumberSample } from "./family.ts"

/** Whose metrics they are, and for which time. */
interface OtlpSource {
  /** Attributes of the process, such as `service.name`. */
  readonly resource: Labels
  readonly version: string
  /** When the counters began, ms since the epoch. */
  readonly startedAt: number
  /** Now, ms since the epoch. */
  readonly at: number
}

/** opentelemetry.proto.metrics.v1.AggregationTemporality: the sums are those since the start. */
const cumulative = 2

const nanosText = (ms: number): string => `${BigInt(Math.round(ms * 1_000)) * 1_000n}`

/** 64-bit integers are text in OTLP's JSON. */
const countText = (count: number): string => String(Math.round(count))

const anyValue = (value: SpanAttribute) => {
  if (typeof value === "string") return { stringValue: value }
  return typeof value === "boolean" ? { boolValue: value } : { intValue: countText(value) }
}

const attributesOf = (values: Readonly<Record<string, SpanAttribute>>) => {
  const attributes = Object.entries(values).map(([key, value]) => ({ key, value: anyValue(value) }))
  return attributes.length === 0 ? {} : { attributes }
}

/**
 * Makes the body of an OTLP/HTTP export of metrics in JSON
 * (opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest).
 */
export const otlpMetrics = (families: ReadonlyArray<Family>, source: OtlpSource): object => {
  const times = {
    startTimeUnixNano: nanosText(source.startedAt),
    timeUnixNano: nanosText(source.at)
  }
  const number = ({ labels, value }: NumberSample) => ({
    ...attributesOf(labels),
    ...times,
    asDouble: value
  })
  const histogram = ({ bounds, counts, labels, sum }: HistogramSample) => ({
    ...attributesOf(labels),
    ...times,
    count: countText(Array.from(counts).reduce((all, count) => all + count, 0)),
    sum,
    bucketCounts: Array.from(counts, countText),
    explicitBounds: bounds
  })
  const metric = (family: Family) => ({
    name: family.name,
    description: family.help,
    unit: family.unit ?? "1",
    ...(family.type === "gauge" ? { gauge: { dataPoints: family.samples.map(number) } } : {}),
    ...(family.type === "counter"
      ? {
          sum: {
            aggregationTemporality: cumulative,
            isMonotonic: true,
            dataPoints: family.samples.map(number)
          }
        }
      : {}),
    ...(family.type === "histogram"
      ? {
          histogram: {
            aggregationTemporality: cumulative,
            dataPoints: family.samples.map(histogram)
          }
        }
      : {})
  })
  const metrics = families.filter(({ samples }) => samples.length > 0).map(metric)
  return {
    resourceMetrics: [
      {
        resource: attributesOf(source.resource),
        scopeMetrics: [{ scope: { name: "petrel", version: source.version }, metrics }]
      }
    ]
  }
}

/** Whose spans they are. */
interface OtlpSpanSource {
  /** Attributes of the workers, such as `service.name`, without their ids. */
  readonly resource: Labels
  readonly version: string
}

/** opentelemetry.proto.trace.v1.Span.SpanKind */
const spanKinds = { client: 3, consumer: 5 } as const
/** opentelemetry.proto.trace.v1.Status.StatusCode */
const statusError = 2

const otlpSpan = (span: Span) => ({
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentId,
  name: span.name,
  kind: spanKinds[span.kind],
  startTimeUnixNano: nanosText(span.startedAt),
  endTimeUnixNano: nanosText(span.endedAt),
  ...attributesOf(span.attributes),
  ...(span.problem === undefined
    ? {}
    : {
        status: { ...(span.problem === "" ? {} : { message: span.problem }), code: statusError }
      })
})

/**
 * Makes the body of an OTLP/HTTP export of spans in JSON
 * (opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest), by the workers that they
 * happened in. Ids are hex there, other than in JSON of other protocol buffers.
 */
export const otlpSpans = (
  spans: ReadonlyArray<Span>,
  { resource, version }: OtlpSpanSource
): object => {
  const byWorker = Map.groupBy(spans, ({ worker }) => worker)
  return {
    resourceSpans: Array.from(byWorker, ([worker, own]) => ({
      resource: attributesOf({
        ...resource,
        ...(worker === undefined ? {} : { "service.instance.id": worker })
      }),
      scopeSpans: [{ scope: { name: "petrel", version }, spans: own.map(otlpSpan) }]
    }))
  }
}
