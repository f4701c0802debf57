import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import type { Family, Labels } from "./family.ts"
import { otlpMetrics } from "./otlp-json.ts"

export interface OtlpOptions {
  /** Where to POST metrics: see {@link otlpUrl}. */
  readonly url: string
  /** Additional headers, such as a key. */
  readonly headers: Readonly<Record<string, string>>
  readonly families: () => ReadonlyArray<Family>
  readonly resource: Labels
  readonly version: string
  /** When the counters began, ms since the epoch. */
  readonly startedAt: number
  /** Pause between two exports, ms. (Default: 15 s) */
  readonly every?: number | undefined
  /** How long an export may take, ms. (Default: 10 s) */
  readonly timeoutMs?: number | undefined
}

const defaultEveryMs = 15_000
const defaultTimeoutMs = 10_000
/** How long a stop waits for the last export, ms. */
const lastExportMs = 2_000
/** How much is read of an answer, bytes: it may say that values were rejected. */
const maxAnswerBytes = 16 * 1024

const metricsPath = "/v1/metrics"

/**
 * Returns the URL to POST to: the URL of a collector with `/v1/metrics`, as OTLP says, unless it
 * ends so already. Returns undefined for what is no http or https URL.
 */
export const otlpUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined
  if (!url.pathname.endsWith(metricsPath))
    url.pathname = `${url.pathname.replace(/\/+$/, "")}${metricsPath}`
  return url.href
}

/**
 * Parses headers as `OTEL_EXPORTER_OTLP_HEADERS` holds them: `name=value,name=value`, percent-encoded.
 * Returns undefined if they are not of that form.
 */
export const readOtlpHeaders = (text: string): Readonly<Record<string, string>> | undefined => {
  const headers: Record<string, string> = {}
  for (const part of text.split(",").filter((part) => part.trim() !== "")) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    if (name === undefined || value === undefined) return undefined
    try {
      headers[name.toLowerCase()] = decodeURIComponent(value)
    } catch {
      return undefined
    }
  }
  return headers
}

const readStart = async (response: Response): Promise<string> => {
  const reader = response.body?.getReader()
  if (reader === undefined) return ""
  let text = ""
  const decoder = new TextDecoder()
  for (;;) {
    const { done, value } = await reader.read()
    if (value !== undefined) text += decoder.decode(value, { stream: true })
    if (!done && text.length < maxAnswerBytes) continue
    await reader.cancel()
    return text.slice(0, maxAnswerBytes)
  }
}

/** Returns what is wrong with an answer, or undefined if it took everything. */
const problemOf = async (response: Response): Promise<string | undefined> => {
  const text = await readStart(response)
  if (!response.ok) return `it answers ${response.status}`
  const rejected = /"rejectedDataPoints"\s*:\s*"?([1-9]\d*)/.exec(text)?.[1]
  return rejected === undefined ? undefined : `it rejects ${rejected} values`
}

const whyOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

/**
 * Pushes metrics to an OTLP/HTTP endpoint at an interval, until the scope closes, and once more
 * then. The sums are cumulative: what could not be sent is in the next export, so nothing is kept
 * meanwhile. Logs once when exports begin to fail, and once when they work again.
 */
export const pushOtlp = Effect.fnUntraced(function* (options: OtlpOptions) {
  const { families, headers, resource, startedAt, url, version } = options
  const { every = defaultEveryMs, timeoutMs = defaultTimeoutMs } = options
  const { origin } = new URL(url)
  let isFailing = false
  const post = Effect.tryPromise({
    try: async (signal) => {
      const source = { resource, version, startedAt, at: timers.wallMs() }
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(otlpMetrics(families(), source)),
        redirect: "error",
        signal
      })
      return problemOf(response)
    },
    catch: whyOf
  })
  const exportWithin = (ms: number) =>
    post.pipe(
      Effect.timeoutOrElse({
        duration: ms,
        orElse: () => Effect.succeed(`no answer within ${ms} ms`)
      }),
      Effect.catch((why) => Effect.succeed(why)),
      Effect.flatMap((why) => {
        const was = isFailing
        isFailing = why !== undefined
        if (isFailing === was) return Effect.void
        return isFailing
          ? Effect.logWarning("metrics cannot be pushed; delivering goes on", { otlp: origin, why })
          : Effect.logInfo("metrics are pushed again", { otlp: origin })
      })
    )
  yield* Effect.addFinalizer(() => exportWithin(lastExportMs))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(every), exportWithin(timeoutMs)))
  )
})
