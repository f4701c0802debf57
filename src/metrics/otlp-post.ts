import { Effect } from "effect"
import { spanText } from "../text/quantities.ts"
import { timers } from "../time/timers.ts"
import type { Family, Labels } from "./family.ts"
import { otlpMetrics } from "./otlp-json.ts"

/** The signals of OTLP, with the path of each below a collector's URL. */
const paths = { metrics: "/v1/metrics", traces: "/v1/traces" } as const
type OtlpSignal = keyof typeof paths

/** Where to POST, and as whom. */
export interface OtlpTarget {
  /** See {@link otlpUrl}. */
  readonly url: string
  /** Additional headers, such as a key. */
  readonly headers: Readonly<Record<string, string>>
}

interface OtlpPostOptions extends OtlpTarget {
  /** What is sent, in the plural. */
  readonly what: string
  /** What happens while it cannot be sent, for the log. */
  readonly meanwhile: string
  /** What becomes of what is refused for what it is, for the log. */
  readonly refused: string
}

/** How much is read of an answer, bytes: it may say that values were rejected. */
const maxAnswerBytes = 16 * 1024

/**
 * Returns the URL to POST to: the URL of a collector with the signal's path, as OTLP says, unless
 * it ends so already. Returns undefined for what is no http or https URL.
 */
export const otlpUrl = (text: string, signal: OtlpSignal): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined
  const path = paths[signal]
  if (!url.pathname.endsWith(path)) url.pathname = `${url.pathname.replace(/\/+$/, "")}${path}`
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

/**
 * What became of a body: taken, or not and to be sent again, or lost as a whole or in part, because
 * it is refused again if it is sent again.
 */
type Fate = "taken" | "waits" | "lost" | "lost-in-part"

interface Posted {
  readonly fate: Fate
  /** What was wrong; empty if it was taken. */
  readonly why: string
}

/**
 * Statuses that speak of the body: the same body is refused again, and would hold up what comes after
 * it. All others speak of the collector, its configuration or the way there, which somebody mends.
 */
const refusals: ReadonlySet<number> = new Set([400, 413, 422])

const judge = async (response: Response): Promise<Posted> => {
  const text = await readStart(response)
  if (!response.ok) {
    const why = `it answers ${response.status}`
    return { fate: refusals.has(response.status) ? "lost" : "waits", why }
  }
  // What was rejected in part must not be sent again, says OTLP.
  const rejected = /"rejected(?:DataPoints|Spans)"\s*:\s*"?([1-9]\d*)/.exec(text)?.[1]
  return rejected === undefined
    ? { fate: "taken", why: "" }
    : { fate: "lost-in-part", why: `it rejects ${rejected} values` }
}

const whyOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

/**
 * Returns what POSTs a body as JSON, within a time (ms). Returns false if it is to be sent again,
 * and true if it was taken, or refused for what it is. It logs once when POSTs begin to fail, once
 * when it changes what becomes of the bodies, and once when POSTs work again.
 */
export const makeOtlpPost = ({ headers, meanwhile, refused, url, what }: OtlpPostOptions) => {
  const { origin } = new URL(url)
  const failed: Record<Exclude<Fate, "taken">, string> = {
    waits: `${what} cannot be pushed; ${meanwhile}`,
    lost: `${what} are refused; ${refused}`,
    "lost-in-part": `some ${what} are refused; ${refused}`
  }
  let last: Fate = "taken"
  return (body: () => object, withinMs: number): Effect.Effect<boolean> =>
    Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(url, {
          method: "POST",
          headers: { ...headers, "content-type": "application/json" },
          body: JSON.stringify(body()),
          redirect: "error",
          signal
        })
        return judge(response)
      },
      catch: whyOf
    }).pipe(
      Effect.timeoutOrElse({
        duration: withinMs,
        orElse: () => Effect.fail(`no answer within ${spanText(withinMs)}`)
      }),
      Effect.catch((why) => Effect.succeed<Posted>({ fate: "waits", why })),
      Effect.flatMap(({ fate, why }) => {
        const isNews = fate !== last
        last = fate
        const log =
          fate === "taken"
            ? Effect.logInfo(`${what} are pushed again`, { otlp: origin })
            : Effect.logWarning(failed[fate], { otlp: origin, why })
        return Effect.as(isNews ? log : Effect.void, fate !== "waits")
      })
    )
}

export interface OtlpOptions extends OtlpTarget {
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

/**
 * Pushes metrics to an OTLP/HTTP endpoint at an interval, until the scope closes, and once more
 * then. The sums are cumulative: what could not be sent is in the next export, so nothing is kept
 * meanwhile. Logs once when exports begin to fail, and once when they work again.
 */
export const pushOtlp = Effect.fnUntraced(function* (options: OtlpOptions) {
  const { families, resource, startedAt, version } = options
  const { every = defaultEveryMs, timeoutMs = defaultTimeoutMs } = options
  const goesOn = "delivering goes on"
  const post = makeOtlpPost({ ...options, what: "metrics", meanwhile: goesOn, refused: goesOn })
  const body = () => otlpMetrics(families(), { resource, version, startedAt, at: timers.wallMs() })
  yield* Effect.addFinalizer(() => post(body, lastExportMs))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(every), post(body, timeoutMs)))
  )
})
