import type { Provider, ProviderEvent, ReceivedRequest } from "../providers/provider.ts"
import type { Alert } from "./alerts.ts"
import type { Entry } from "./entry.ts"
import type { LogLine } from "./log.ts"
import type { Store } from "./store.ts"

/** An event before it is stored, as the functions of the settings get it. */
export interface ReadableEvent extends ProviderEvent {
  readonly source: string
  readonly headers: ReceivedRequest["headers"]
  /** The body, parsed as JSON. Throws where it is none: such an event is quarantined. */
  // biome-ignore lint/suspicious/noExplicitAny: it is whatever the sender sends
  readonly data: any
}

/** `id`: the sender's id, or the payload's hash where it gives none. `payload`: always the payload's hash. */
export type KeySetting = "id" | "payload" | ((event: ReadableEvent) => string)

/** What is set for a source, or for all sources. */
export interface SourceOptions {
  /** What makes two receipts the same event. (Default: id) */
  readonly key?: KeySetting
  /** What the event is about, such as a customer: `process` works on events of one subject in order. (Default: the provider's) */
  readonly subject?: (event: ReadableEvent) => string | undefined
  /** A whole number, greater for a later state of the subject. An event that is older than what was worked on is skipped. */
  readonly version?: (event: ReadableEvent) => number | undefined
  /** For how long keys are remembered, in ms. (Default: as long as the provider may repeat, and a day) */
  readonly keepMs?: number
  /** Greatest length of a body, in bytes. (Default: 1 MiB) */
  readonly maxBodyBytes?: number
  /** Events a second; more are answered 503. (Default: any number) */
  readonly ratePerSecond?: number
  /** The sender's time-out, in ms: `once` that takes longer is warned of. (Default: the provider's, else 5000) */
  readonly answerWithinMs?: number
  /** Whether a replay that Petrel sends (header `petrel-round`) is worked on again. (Default: false) */
  readonly takeReplays?: boolean
}

export interface Source extends SourceOptions {
  readonly provider: Provider
}

export interface ReceiverSettings<Tx> extends SourceOptions {
  readonly store: Store<Tx>
  /** By the names that the application calls them: a provider, or a provider with settings of its own. */
  readonly sources: Readonly<Record<string, Provider | Source>>
  /** Requests under way at the same time. One of several sources gets half of them at most. (Default: 100) */
  readonly maxInFlight?: number
  /** Bytes of bodies in memory, with the same rule. (Default: 64 MiB) */
  readonly maxBytesInFlight?: number
  /** How long a body may take to arrive, in ms. (Default: 10000) */
  readonly bodyWithinMs?: number
  /** How long the store may take to store what is received, in ms. (Default: 5000) */
  readonly storeWithinMs?: number
  /** The URL before the path, where a proxy has changed it, such as https://shop.example.com. (Default: by the host header) */
  readonly publicOrigin?: string
  /** Called with a line for each receipt, attempt and trouble. (Default: warnings and errors to the console) */
  readonly log?: (line: LogLine) => void
  /** Called when a share of what this process did passes a threshold, and when it is back. */
  readonly onAlert?: (alert: Alert) => void
  /** Called for an event whose work has failed for good. */
  readonly onDead?: (entry: Entry, error: unknown) => void
  /** Called for a request that is verified but not readable. */
  readonly onQuarantined?: (source: string, reason: string) => void
  /** Called between two steps. A test kills the process there. */
  readonly failpoint?: (step: Step) => void
}

/** The moments between two steps, where a crash must neither lose an event nor let it take effect twice. */
export type Step =
  | "received"
  | "verified"
  | "working-once"
  | "worked-once"
  | "stored"
  | "claimed"
  | "working"
  | "worked"
  | "committed"
  | "failed"

export interface ProcessOptions {
  /** Attempts before an event is dead. (Default: 11) */
  readonly attempts?: number
  /** Returns how long to wait after so many failed attempts, in ms. (Default: 1 s, doubled four times each, to 6 hours) */
  readonly backoffMs?: (attempts: number) => number
  /** How long an attempt may take, in ms. Then its transaction is rolled back and it has failed. (Default: 300000) */
  readonly withinMs?: number
}

export interface OnceOptions {
  /** How long the work may take, in ms. Then its transaction is rolled back and the sender is answered 500. (Default: 30000) */
  readonly withinMs?: number
}

export interface StartOptions {
  /** Events under way at the same time. (Default: 8) */
  readonly concurrency?: number
  /** How often the store is asked for events that other processes have stored, in ms. (Default: 500) */
  readonly pollMs?: number
  /** How long an event of a process that has died waits for another one, in ms. (Default: 30000) */
  readonly leaseMs?: number
}

const dayMs = 86_400_000

const ofSource = [
  ...["key", "subject", "version", "keepMs", "maxBodyBytes", "ratePerSecond"],
  ...["answerWithinMs", "takeReplays"]
]

/** The names of all options, by what has them. */
const optionsOf = {
  receiver: [
    ...["store", "sources", ...ofSource, "maxInFlight", "maxBytesInFlight", "bodyWithinMs"],
    ...["storeWithinMs", "publicOrigin", "log", "onAlert", "onDead", "onQuarantined", "failpoint"]
  ],
  source: ["provider", ...ofSource],
  once: ["withinMs"],
  process: ["attempts", "backoffMs", "withinMs"],
  start: ["concurrency", "pollMs", "leaseMs"]
} as const

/** Options that are functions where they are given. */
const functions: ReadonlySet<string> = new Set([
  ...["subject", "version", "backoffMs", "log", "onAlert", "onDead", "onQuarantined", "failpoint"]
])

/**
 * Refuses options that nothing reads, and what is no function but must be one.
 *
 * @param of says whose they are.
 * @throws TypeError with one sentence.
 */
export const checkOptions = (kind: keyof typeof optionsOf, of: string, given: object): void => {
  const known: ReadonlyArray<string> = optionsOf[kind]
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) {
      // It is for tests.
      const shown = known.filter((one) => one !== "failpoint")
      throw new TypeError(`${name} is not an option of ${of}: it has ${shown.join(", ")}`)
    }
    if (functions.has(name) && value !== undefined && typeof value !== "function")
      throw new TypeError(`${name} of ${of} must be a function, and is ${String(value)}`)
    const isKey = value === undefined || value === "id" || value === "payload"
    if (name === "key" && !isKey && typeof value !== "function")
      throw new TypeError(`key of ${of} must be "id", "payload" or a function`)
  }
}

/** A source's settings, with the defaults. */
export interface CompiledSource {
  readonly name: string
  readonly provider: Provider
  readonly key: KeySetting
  readonly subject: ((event: ReadableEvent) => string | undefined) | undefined
  readonly version: ((event: ReadableEvent) => number | undefined) | undefined
  readonly keepMs: number
  readonly maxBodyBytes: number
  readonly ratePerSecond: number | undefined
  readonly answerWithinMs: number
  readonly takeReplays: boolean
}

const isSource = (given: Provider | Source): given is Source => "provider" in given

const positive = (name: string, value: number | undefined): void => {
  if (value !== undefined && !(Number.isFinite(value) && value > 0))
    throw new TypeError(`${name} must be a number above 0, and is ${value}`)
}

/**
 * Returns the sources with all their settings.
 *
 * @throws TypeError for a setting that cannot be.
 */
export const compiledSources = <Tx>(
  settings: ReceiverSettings<Tx>
): ReadonlyMap<string, CompiledSource> => {
  checkOptions("receiver", "the receiver", settings)
  if (typeof settings.store?.once !== "function")
    throw new TypeError("store is missing: give one, such as postgresStore(pool)")
  const entries = Object.entries(settings.sources ?? {})
  if (entries.length === 0)
    throw new TypeError("sources is empty: name at least one, such as { stripe: stripe({ … }) }")
  return new Map(
    entries.map(([name, given]) => {
      if (!/^[\w.-]{1,60}$/.test(name))
        throw new TypeError(
          `the source's name ${JSON.stringify(name)} must be 1 to 60 letters, digits, ., - or _`
        )
      if (isSource(given)) checkOptions("source", `the source ${name}`, given)
      const own: SourceOptions = isSource(given) ? given : {}
      const provider = isSource(given) ? given.provider : given
      const of = <K extends keyof SourceOptions>(option: K) => own[option] ?? settings[option]
      for (const option of [
        ...(["keepMs", "maxBodyBytes", "ratePerSecond", "answerWithinMs"] as const)
      ])
        positive(`${option} of ${name}`, of(option))
      return [
        name,
        {
          ...{ name, provider },
          key: of("key") ?? "id",
          subject: of("subject"),
          version: of("version"),
          keepMs: of("keepMs") ?? provider.repeatsForMs + dayMs,
          maxBodyBytes: of("maxBodyBytes") ?? 1_048_576,
          ratePerSecond: of("ratePerSecond"),
          answerWithinMs: of("answerWithinMs") ?? provider.waitsForMs ?? 5_000,
          takeReplays: of("takeReplays") ?? false
        }
      ]
    })
  )
}
