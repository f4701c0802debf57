import { hostname } from "node:os"
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import packageJson from "../../../package.json" with { type: "json" }
import type { Family } from "../../metrics/family.ts"
import { gauge } from "../../metrics/family.ts"
import type { ListenAddress } from "../../metrics/listen.ts"
import { listenText, readListenAddress } from "../../metrics/listen.ts"
import { serveMetrics } from "../../metrics/metrics-server.ts"
import { otlpUrl, pushOtlp, readOtlpHeaders } from "../../metrics/otlp-post.ts"
import { processStartedAt, watchProcess } from "../../metrics/process-metrics.ts"
import { WorkerMetrics } from "../../metrics/worker-metrics.ts"
import { Refused } from "../refused.ts"
import { maybe } from "./shared.ts"

const { version } = packageJson

/** Environment variable with headers of OTLP exports: a key in a flag would be in `ps`. */
const headersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

/** Where numbers go. */
export const metricsFlags = {
  metrics: Flag.String("metrics").pipe(
    Flag.withMetavar("ADDRESS:PORT"),
    Flag.withDescription(
      "Serve /metrics for Prometheus there, /healthz and /readyz; such as 127.0.0.1:9464 (port 0: a free one)"
    ),
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(readListenAddress(text)),
      () => "must be an address and a port, such as 127.0.0.1:9464"
    ),
    Flag.optional
  ),
  otlp: Flag.String("otlp").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription(
      `Push the same by OTLP/HTTP, such as to http://127.0.0.1:4318; headers come from ${headersVariable}`
    ),
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(otlpUrl(text, "metrics")),
      () => "must be the URL of a collector, such as http://127.0.0.1:4318"
    ),
    Flag.optional
  ),
  metricsLabels: Flag.String("metrics-labels").pipe(
    Flag.withMetavar("LABELS"),
    Flag.withDescription(
      "tenant: series for the first 100 tenants; others together as _other (default: none)"
    ),
    Flag.filterMap(
      (text) => (text === "tenant" ? Option.some(text) : Option.none()),
      () => "must be tenant"
    ),
    Flag.optional
  )
}

export interface MetricsChoice {
  readonly metrics: Option.Option<ListenAddress>
  readonly otlp: Option.Option<string>
  readonly metricsLabels: Option.Option<string>
}

/** The numbers of a worker, and where they go. */
interface WorkerNumbers {
  /** What the worker counts in. */
  readonly metrics: WorkerMetrics
  /** Where they are served; undefined if they are not. */
  readonly servedAt: string | undefined
  /** Called when the worker has started, with what says whether it is ready. */
  readonly started: (problems: () => ReadonlyArray<string>) => void
}

/** Reads the headers of OTLP exports. Fails if the variable is not of their form. */
const readHeaders = Effect.suspend(() => {
  const headers = readOtlpHeaders(process.env[headersVariable] ?? "")
  return headers === undefined
    ? Effect.fail(
        new Refused({
          message: `${headersVariable} must be name=value,name=value, percent-encoded`
        })
      )
    : Effect.succeed(headers)
})

/** A process that has numbers. */
interface Numbered {
  /** Its kind, `worker`, and its name. */
  readonly kind: string
  readonly id: string
  readonly families: () => ReadonlyArray<Family>
  /** What keeps it from its work, one sentence each. */
  readonly problems: () => ReadonlyArray<string>
}

/**
 * Serves and pushes the numbers of this process until the scope closes. Returns where they are
 * served; undefined if they are not.
 */
export const serveNumbers = Effect.fnUntraced(function* (
  choice: Omit<MetricsChoice, "metricsLabels">,
  { families: own, id, kind, problems }: Numbered
) {
  if (Option.isNone(choice.metrics) && Option.isNone(choice.otlp)) return undefined
  const ofProcess = yield* watchProcess
  const info: Family = {
    name: "petrel.build_info",
    help: "The version that runs.",
    type: "gauge",
    samples: [{ labels: { version, [kind]: id }, value: 1 }]
  }
  const families = () => [
    info,
    gauge("petrel.ready", "1 if /readyz says ready.", problems().length === 0 ? 1 : 0),
    ...own(),
    ...ofProcess()
  ]
  if (Option.isSome(choice.otlp))
    yield* pushOtlp({
      ...{ url: choice.otlp.value, headers: yield* readHeaders, families, version },
      startedAt: processStartedAt(),
      resource: {
        "service.name": `petrel-${kind}`,
        "service.instance.id": id,
        "service.version": version,
        "host.name": hostname(),
        "process.pid": String(process.pid)
      }
    })
  if (Option.isNone(choice.metrics)) return undefined
  const at = yield* serveMetrics({ ...choice.metrics.value, families, problems }).pipe(
    Effect.mapError(({ message }) => new Refused({ message: `--metrics: ${message}` }))
  )
  return `http://${listenText(at)}/metrics`
})

/**
 * Serves and pushes the numbers of a worker until the scope closes. It begins before the worker
 * does: an address in use is told at once.
 *
 * @param worker its id.
 */
export const startMetrics = Effect.fnUntraced(function* (choice: MetricsChoice, worker: string) {
  const metrics = new WorkerMetrics(Option.isSome(choice.metricsLabels))
  let problems: () => ReadonlyArray<string> = () => ["the worker has not started"]
  const servedAt = yield* serveNumbers(choice, {
    ...{ kind: "worker", id: worker },
    families: () => metrics.families(),
    problems: () => problems()
  })
  return {
    metrics,
    servedAt,
    started: (those) => {
      problems = those
    }
  } satisfies WorkerNumbers
})

/** True for `sampled`. */
export const tracesFlag = Flag.String("traces").pipe(
  Flag.withMetavar("TRACES"),
  Flag.withDescription(
    "sampled: for events whose traceparent is sampled, receivers get the attempt's span as parent; off: the publisher's (default: off)"
  ),
  Flag.withDefault("off"),
  Flag.filterMap(
    (text) => (text === "off" || text === "sampled" ? Option.some(text) : Option.none()),
    () => "must be off or sampled"
  ),
  Flag.map((text) => text === "sampled")
)

/** Where spans go. */
export const tracesOtlpFlag = Flag.String("traces-otlp").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription(
    `Push the spans of sampled traces by OTLP/HTTP, such as to http://127.0.0.1:4318; headers come from ${headersVariable}`
  ),
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(otlpUrl(text, "traces")),
    () => "must be the URL of a collector, such as http://127.0.0.1:4318"
  ),
  maybe
)

/**
 * Exports spans until the scope closes.
 *
 * @param url where to; undefined to export none.
 * @param name of this process.
 */
export const startTraces = Effect.fnUntraced(function* (url: string | undefined, name: string) {
  if (url === undefined) return
  const headers = yield* readHeaders
  const { exportTraces } = yield* Effect.promise(
    () => import("../../operations/traces/export-traces.ts")
  )
  yield* exportTraces({ url, headers, name, version })
})
