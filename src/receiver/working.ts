import type { Context } from "./context.ts"
import { type Entry, errorText, isPermanent, PermanentError } from "./entry.ts"
import { inboxEvent } from "./inbox-event.ts"
import { makePlaces } from "./load.ts"
import { after, monotonicMs, pause, random, wallMs, within } from "./machine.ts"
import { readRequest, requestOf } from "./reading.ts"
import type { CompiledSource, StartOptions } from "./settings.ts"
import { type Failure, type Queue, StoreUnavailable, type WorkOutcome } from "./store.ts"
import { type AttemptOutcome, increment, observe } from "./tally.ts"
import { defaultBackoffMs, type RegisteredWork, tookTooLong } from "./works.ts"

/* Works off what is stored: claims, works, and records how it ended. */

/** Between two prunings. */
const pruneEveryMs = 60_000

/** Rows in one pruning statement: it holds locks. */
const pruneAtOnce = 1_000

/** After a store that did not answer. */
const troublePauseMs = 1_000

export interface Working {
  /** Stops claiming, and waits for what is under way. */
  readonly stop: () => Promise<void>
}

/** Forgets what is remembered no longer. */
export const makePruning = <Tx>({ log, store }: Pick<Context<Tx>, "log" | "store">) => {
  let last = Number.NEGATIVE_INFINITY
  let isPruning = false
  /** Prunes, if it is time. Returns at once. */
  return (): void => {
    if (isPruning || monotonicMs() - last < pruneEveryMs) return
    last = monotonicMs()
    isPruning = true
    const prune = async () => {
      try {
        while ((await store.prune(pruneAtOnce)) === pruneAtOnce);
      } catch (error) {
        log({ level: "warn", text: "old keys could not be pruned", error: errorText(error) })
      } finally {
        isPruning = false
      }
    }
    void prune()
  }
}

/** Longest wait for an attempt that an application may ask for: a year. */
const maxWaitMs = 31_536_000_000

/** Most attempts at work: the default's, where there is none for the type. */
const mostOf = <Tx>(work: RegisteredWork<Tx> | undefined): number => work?.options.attempts ?? 11

const unrecorded = (attempts: number): string =>
  `none of ${attempts} attempts came to an end: the work kills its process, or is killed with it`

/** Spreads what failed at the same time: 80% to 120%. */
const jittered = (ms: number): number => Math.round(ms * (0.8 + 0.4 * random()))

export const startWorking = <Tx>(
  context: Context<Tx>,
  queue: Queue<Tx>,
  prune: () => void,
  { concurrency = 8, leaseMs = 30_000, pollMs = 500 }: StartOptions = {}
): Working & { readonly wake: () => void } => {
  const { alerts, failpoint, log, sources, store, tally, works } = context
  const stopping = new AbortController()
  const underWay = new Set<Promise<void>>()
  const places = makePlaces([...sources.keys()], Math.min(concurrency, queue.atOnce ?? concurrency))
  let woken: () => void = () => undefined
  let isWoken = false

  const wake = () => {
    isWoken = true
    woken()
  }

  /** Waits until there may be something to do. */
  const idle = async (ms: number) => {
    if (!isWoken && !stopping.signal.aborted) {
      const waiting = new AbortController()
      woken = () => waiting.abort()
      await pause(ms, waiting.signal)
    }
    isWoken = false
  }

  const note = (
    { attempts, key, source, type }: Entry,
    outcome: AttemptOutcome,
    ms: number,
    error?: string
  ) => {
    const counts = tally.get(source)
    if (counts !== undefined) {
      increment(counts.attempts, outcome)
      observe(counts.workTimes, ms)
    }
    if (outcome !== "lost")
      alerts.add(source, {
        at: wallMs(),
        isSuccess: outcome === "done" || outcome === "stale",
        isRetry: attempts > 1,
        isPermanent: outcome === "dead",
        ms
      })
    log({
      level: outcome === "dead" ? "error" : outcome === "failed" ? "warn" : "info",
      text: `${source}: work of ${type ?? "an unreadable request"} ${outcome}, attempt ${attempts}`,
      ...{ source, type, key, outcome, attempt: attempts, correlationId: key, error },
      latencyMs: Math.round(ms * 10) / 10
    })
  }

  const silence = (ms: number) => `${store.name} has not answered for ${ms} ms`

  /** Whether work has ended because it was told that the receiver stops. */
  const isStopped = (error: unknown): boolean =>
    stopping.signal.aborted &&
    (error === stopping.signal.reason || (error instanceof Error && error.name === "AbortError"))

  const fail = async (
    entry: Entry,
    work: RegisteredWork<Tx> | undefined,
    error: unknown,
    isFree: boolean
  ): Promise<AttemptOutcome> => {
    const text = errorText(error)
    const asked = (failure: Failure) =>
      within(leaseMs, queue.fail(entry, failure), () => new StoreUnavailable(silence(leaseMs)))
    if (isFree) {
      await asked({ kind: "retry", delayMs: jittered(troublePauseMs), error: text, isFree })
      return "failed"
    }
    if (isPermanent(error) || entry.attempts >= mostOf(work)) {
      if (!(await asked({ kind: "dead", error: text }))) return "lost"
      context.kept(
        { ...entry, body: entry.body ?? new Uint8Array() },
        "dead",
        error,
        entry.attempts
      )
      return "dead"
    }
    const wait = work?.options.backoffMs(entry.attempts) ?? Number.NaN
    // What the application's function makes of it may be no number.
    const delayMs = jittered(
      wait >= 0 && wait <= maxWaitMs ? wait : defaultBackoffMs(entry.attempts)
    )
    return (await asked({ kind: "retry", delayMs, error: text })) ? "failed" : "lost"
  }

  /** A request that could not be read before, and is to be read again. */
  const readAgain = async (source: CompiledSource, entry: Entry): Promise<AttemptOutcome> => {
    const read = readRequest(source, requestOf(entry.headers, entry.body ?? new Uint8Array()))
    if (!read.ok) {
      await queue.fail(entry, { kind: "quarantined", error: read.reason })
      return "failed"
    }
    const outcome = await queue.replace(
      entry,
      read.entries.filter(({ type }) => works.find(type) !== undefined)
    )
    wake()
    return outcome
  }

  const runWork = async (
    entry: Entry & { readonly type: string },
    work: RegisteredWork<Tx>,
    onBegin: () => void
  ): Promise<WorkOutcome> => {
    const { withinMs } = work.options
    const late = new AbortController()
    let whyLate: Error = new StoreUnavailable(silence(withinMs))
    const cancel = after(withinMs, () => late.abort(whyLate))
    const signal = AbortSignal.any([late.signal, stopping.signal])
    const event = inboxEvent(
      { ...entry, body: entry.body ?? new Uint8Array() },
      entry.attempts,
      signal
    )
    try {
      const worked = queue.work(
        entry,
        async (tx) => {
          // A store that was silent may come to it when the event is to be claimed again.
          late.signal.throwIfAborted()
          whyLate = tookTooLong(withinMs)
          onBegin()
          failpoint("working")
          await work.run(tx, event)
          failpoint("worked")
        },
        late.signal
      )
      // A store that has fallen silent must not keep the place of this work.
      return await within(withinMs + leaseMs, worked, () => new StoreUnavailable(silence(leaseMs)))
    } finally {
      cancel()
    }
  }

  const attempt = async (entry: Entry): Promise<void> => {
    const began = monotonicMs()
    const { type } = entry
    const source = sources.get(entry.source)
    const work = type === undefined ? undefined : works.find(type)
    let hasBegun = false
    try {
      if (source === undefined) return
      if (type === undefined) {
        note(entry, await readAgain(source, entry), monotonicMs() - began)
        return
      }
      if (work === undefined)
        throw new Error(`no work is registered for ${type}: register one, or resolve the event`)
      // Attempts that ended neither well nor badly: what they killed could not record it.
      if (entry.attempts > mostOf(work)) throw new PermanentError(unrecorded(mostOf(work)))
      const outcome = await runWork({ ...entry, type }, work, () => {
        hasBegun = true
      })
      failpoint("committed")
      note(entry, outcome, monotonicMs() - began)
    } catch (error) {
      const isFree = (error instanceof StoreUnavailable && !hasBegun) || isStopped(error)
      const outcome = await fail(entry, work, error, isFree).catch((failed) => {
        // Its lease ends, and it is claimed again.
        log({ level: "error", text: "a failed attempt was not recorded", error: errorText(failed) })
        return "failed" as const
      })
      failpoint("failed")
      note(entry, outcome, monotonicMs() - began, errorText(error))
    }
  }

  const begin = (entry: Entry) => {
    places.take(entry.source)
    const attempting = attempt(entry).finally(() => {
      underWay.delete(attempting)
      places.giveBack(entry.source)
      // The next of its subject can be claimed now.
      wake()
    })
    underWay.add(attempting)
  }

  /** When a claim last left sources out that have all the places that they may. */
  let lastNarrow = Number.NEGATIVE_INFINITY

  const loop = async () => {
    while (!stopping.signal.aborted) {
      prune()
      alerts.look(wallMs())
      const { limit, sources: open } = places.open()
      const isNarrow = open.length < sources.size
      // A store reads past all that the others have: not each time that a work ends.
      const rest = isNarrow ? lastNarrow + pollMs - monotonicMs() : 0
      if (limit <= 0 || rest > 0) {
        await (limit <= 0 ? Promise.race(underWay) : idle(rest))
        continue
      }
      if (isNarrow) lastNarrow = monotonicMs()
      try {
        // What comes later than this is claimed again when its lease is over.
        const claimed = await within(
          leaseMs,
          queue.claim(open, limit, leaseMs),
          () => new StoreUnavailable(silence(leaseMs))
        )
        failpoint("claimed")
        for (const entry of claimed) begin(entry)
        if (claimed.length === 0 && !isNarrow) await idle(pollMs)
      } catch (error) {
        log({ level: "error", text: "nothing could be claimed", error: errorText(error) })
        await pause(troublePauseMs, stopping.signal)
      }
    }
  }
  const looping = loop()

  return {
    wake,
    stop: async () => {
      stopping.abort(new Error("the receiver stops"))
      wake()
      await looping
      await Promise.all(underWay)
    }
  }
}
