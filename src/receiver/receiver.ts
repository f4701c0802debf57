import { type Alert, makeAlerts } from "./alerts.ts"
import type { Context } from "./context.ts"
import { type Entry, errorText, type NewEntry, storable } from "./entry.ts"
import {
  type Entrance,
  expressHandler,
  fastifyPlugin,
  fetchHandler,
  honoHandler,
  nodeHandler
} from "./frameworks.ts"
import { makeLoad, makeRate } from "./load.ts"
import { boundRefusals, consoleLog } from "./log.ts"
import { wallMs, within } from "./machine.ts"
import { prometheusText } from "./prometheus.ts"
import {
  type CompiledSource,
  checkOptions,
  compiledSources,
  type OnceOptions,
  type ProcessOptions,
  type ReceiverSettings,
  type StartOptions
} from "./settings.ts"
import { type ReceiverStats, statsOf } from "./stats.ts"
import { type Queue, StoreUnavailable } from "./store.ts"
import { makeTaking, noteAnswer } from "./taking.ts"
import { makeTally } from "./tally.ts"
import { makePruning, startWorking, type Working } from "./working.ts"
import { makeWorks, type Work } from "./works.ts"

/** What waits for a person: dead events, or quarantined requests. */
export interface Kept {
  /** Lists them without their bodies, the youngest first; at most 50, unless `limit` says otherwise. */
  readonly list: (selection?: {
    readonly source?: string
    readonly before?: string
    readonly limit?: number
  }) => Promise<ReadonlyArray<Entry>>
  /** Lets one be worked on again, as if it had just come. False if it is not there. */
  readonly retry: (id: string) => Promise<boolean>
  /** Gives one up, and drops its body. False if it is not there. */
  readonly resolve: (id: string, by: string) => Promise<boolean>
}

export interface Receiver<Tx> {
  /**
   * Does the work of events of a type within their requests, in one transaction with the mark that they are done.
   * The sender is answered after the commit.
   *
   * @param type such as `invoice.paid`, or with `*` for any text: `invoice.*`, `*`.
   * @throws TypeError if the type has a handler already.
   */
  readonly once: (type: string, work: Work<Tx>, options?: OnceOptions) => void
  /**
   * Stores events of a type, answers, and then works: with retries, and in order for each subject. Needs `start`.
   *
   * @throws TypeError if the type has a handler already, or the store remembers keys alone.
   */
  readonly process: (type: string, work: Work<Tx>, options?: ProcessOptions) => void
  /** Starts to work on stored events. */
  readonly start: (options?: StartOptions) => void
  /** Starts no more work, and waits for what is in progress. */
  readonly stop: () => Promise<void>
  /** Makes the store's tables, or those of a newer version. */
  readonly migrate: () => Promise<void>
  /**
   * Returns a handler for `createServer` of Node.
   *
   * @throws TypeError if there is no such source.
   */
  readonly node: (source: string) => ReturnType<typeof nodeHandler>
  readonly express: (source: string) => ReturnType<typeof expressHandler>
  /** A plugin, whose body parsers are its own. */
  readonly fastify: (source: string) => ReturnType<typeof fastifyPlugin>
  readonly hono: (source: string) => ReturnType<typeof honoHandler>
  readonly fetch: (source: string) => ReturnType<typeof fetchHandler>
  readonly dead: Kept
  readonly quarantined: Kept
  /** Returns an event with its body, unless that was dropped. */
  readonly show: (id: string) => Promise<Entry | undefined>
  /** Returns the ids of a sender's list that never came in. */
  readonly missing: (source: string, ids: ReadonlyArray<string>) => Promise<ReadonlyArray<string>>
  /** Returns figures of what came in the last `sinceMs`. (Default: an hour) */
  readonly stats: (selection?: {
    readonly source?: string
    readonly sinceMs?: number
  }) => Promise<ReceiverStats>
  /** Returns the figures of this process, and of what waits in the store if it answers, in Prometheus's text format. */
  readonly metrics: () => Promise<string>
}

const hourMs = 3_600_000

const positive = (name: string, value: number | undefined, otherwise: number): number => {
  if (value === undefined) return otherwise
  if (Number.isFinite(value) && value > 0) return value
  throw new TypeError(`${name} must be a number above 0, and is ${value}`)
}

/**
 * Makes a receiver of webhooks, which takes each event once.
 *
 * @throws TypeError for a setting that is not valid.
 */
export const receiver = <Tx>(settings: ReceiverSettings<Tx>): Receiver<Tx> => {
  const { onAlert, onDead, onQuarantined, store } = settings
  const sources = compiledSources(settings)
  const tally = makeTally(sources.keys())
  const works = makeWorks<Tx>()
  const maxInFlight = positive("maxInFlight", settings.maxInFlight, 100)
  const logTo = settings.log ?? consoleLog
  /** What the application's functions throw must not end what goes on here. */
  const safely = (run: () => void) => {
    try {
      run()
    } catch (error) {
      consoleLog({ level: "error", text: "a callback threw", error: errorText(error) })
    }
  }
  const log = boundRefusals((line) => safely(() => logTo(line)))
  const alerts = makeAlerts((alert: Alert) => {
    log({ level: alert.isRaised ? "warn" : "info", text: alert.text, source: alert.source })
    if (onAlert !== undefined) safely(() => onAlert(alert))
  })
  const rates = new Map(
    [...sources.values()].flatMap(({ name, ratePerSecond }) =>
      ratePerSecond === undefined ? [] : [[name, makeRate(ratePerSecond)] as const]
    )
  )
  let working: (Working & { readonly wake: () => void }) | undefined
  const prune = makePruning({ log, store })

  const context: Context<Tx> = {
    ...{ store, sources, works, tally, alerts, log },
    settings: {
      maxInFlight,
      storeWithinMs: positive("storeWithinMs", settings.storeWithinMs, 5_000)
    },
    failpoint: settings.failpoint ?? (() => undefined),
    rateOf: (source) => rates.get(source),
    wake: () => working?.wake(),
    answered: (source, answered) => {
      noteAnswer({ alerts, log, tally }, source.name, answered)
      // Where nothing is worked off in the background, receipts have to see to what is old.
      if (answered.answer.status < 300) prune()
      return answered.answer
    },
    kept: (entry: NewEntry, state, reason, attempts) => {
      const counts = tally.get(entry.source)
      if (counts !== undefined) counts[state] += 1
      if (state === "quarantined") {
        const text = errorText(reason)
        if (onQuarantined !== undefined) safely(() => onQuarantined(entry.source, text))
      } else if (onDead !== undefined) {
        void tellDead(entry, reason, attempts)
      }
    }
  }

  const tellDead = async (entry: NewEntry, reason: unknown, attempts: number) => {
    const now = wallMs()
    const told: Entry =
      "id" in entry
        ? (entry as Entry)
        : {
            ...entry,
            ...{ id: "", state: "dead", attempts, receipts: 1, conflicts: 0, receivedAt: now },
            ...{ startedAt: now, finishedAt: now, nextAt: now, error: errorText(reason) }
          }
    safely(() => onDead?.({ ...told, state: "dead", error: errorText(reason) }, reason))
  }

  const take = makeTaking(context)
  const load = makeLoad(
    sources.size,
    maxInFlight,
    positive("maxBytesInFlight", settings.maxBytesInFlight, 67_108_864)
  )
  const entrance: Entrance = {
    ...{ load, take },
    bodyWithinMs: positive("bodyWithinMs", settings.bodyWithinMs, 10_000),
    publicOrigin: settings.publicOrigin?.replace(/\/+$/, ""),
    refused: (source, given, error) =>
      context.answered(source, { answer: given, latencyMs: 0, error })
  }

  const sourceOf = (name: string): CompiledSource => {
    const found = sources.get(name)
    if (found !== undefined) return found
    throw new TypeError(
      `there is no source ${JSON.stringify(name)}: there are ${[...sources.keys()].join(", ")}`
    )
  }

  const queueFor = (what: string): Queue<Tx> => {
    if (store.queue !== undefined) return store.queue
    throw new TypeError(
      `${store.name} remembers keys alone, and ${what} needs a store that keeps events: PostgreSQL, MySQL, MariaDB or SQLite`
    )
  }

  const kept = (state: "dead" | "quarantined"): Kept => ({
    list: (selection = {}) => queueFor(`the list of ${state} events`).list({ ...selection, state }),
    retry: async (id) => {
      const retried = await queueFor("retry").retry(id)
      if (retried) context.wake()
      return retried
    },
    resolve: (id, by) => queueFor("resolve").resolve(id, by)
  })

  return {
    once: (type, work, options) => works.add(type, "once", work, options),
    process: (type, work, options) => {
      queueFor("process")
      works.add(type, "process", work, options)
    },
    start: (options) => {
      if (working !== undefined) throw new Error("the receiver has been started")
      checkOptions("start", "start", options ?? {})
      for (const name of ["concurrency", "leaseMs", "pollMs"] as const)
        positive(name, options?.[name], 1)
      working = startWorking(context, queueFor("start"), prune, options)
    },
    stop: async () => {
      const stopping = working
      working = undefined
      await stopping?.stop()
    },
    migrate: () => store.migrate(),
    node: (source) => nodeHandler(entrance, sourceOf(source)),
    express: (source) => expressHandler(entrance, sourceOf(source)),
    fastify: (source) => fastifyPlugin(entrance, sourceOf(source)),
    hono: (source) => honoHandler(entrance, sourceOf(source)),
    fetch: (source) => fetchHandler(entrance, sourceOf(source)),
    dead: kept("dead"),
    quarantined: kept("quarantined"),
    show: (id) => queueFor("show").show(id),
    missing: async (source, ids) => {
      const known = await store.known(sourceOf(source).name, ids.map(storable))
      return ids.filter((id) => !known.has(storable(id)))
    },
    stats: ({ sinceMs = hourMs, source } = {}) =>
      statsOf(
        queueFor("stats"),
        tally,
        source === undefined ? undefined : sourceOf(source).name,
        sinceMs
      ),
    metrics: async () => {
      // Where the store is away, the figures of this process are asked for all the more.
      const silent = () => new StoreUnavailable(`${store.name} does not answer`)
      const asked = store.queue?.waiting() ?? Promise.resolve([])
      const waiting = await within(context.settings.storeWithinMs, asked, silent).catch((error) => {
        log({ level: "warn", text: "what waits could not be counted", error: errorText(error) })
        return []
      })
      return prometheusText(tally, load.inFlight(), waiting)
    }
  }
}
