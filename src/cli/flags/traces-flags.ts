import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import packageJson from "../../../package.json" with { type: "json" }
import { otlpUrl } from "../../metrics/otlp-post.ts"
import { headersVariable, readHeaders } from "./metrics-flags.ts"
import { maybe } from "./shared.ts"

/** True for `sampled`. */
export const tracesFlag = Flag.String("traces").pipe(
  Flag.withMetavar("TRACES"),
  Flag.withDescription(
    "sampled: where an event's traceparent has the sampled flag, receivers get the attempt's span as parent; off: the publisher's (default: off)"
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
  yield* exportTraces({ url, headers, name, version: packageJson.version })
})
