import type { ReceivedRequest } from "../providers/provider.ts"
import type { Answered } from "./answers.ts"
import { type Answer, answer, type Outcome, worstOf } from "./answers.ts"
import type { Context } from "./context.ts"
import { errorText, isPermanent, type NewEntry } from "./entry.ts"
import { inboxEvent } from "./inbox-event.ts"
import { correlationOf } from "./log.ts"
import { after, monotonicMs, wallMs, within } from "./machine.ts"
import { readRequest } from "./reading.ts"
import type { CompiledSource } from "./settings.ts"
import { type Queue, StoreUnavailable } from "./store.ts"
import { increment, observe } from "./tally.ts"
import { type RegisteredWork, tookTooLong } from "./works.ts"

/* One request, from its bytes to its answer. What is answered 2xx is stored or done before. */

type TypedEntry = NewEntry & { readonly type: string }

/** What became of one event. */
interface Taken {
  readonly outcome: Outcome
  readonly receipts?: number
  readonly retryAfterMs?: number
  readonly error?: string
}

const unavailable = (error: unknown): Taken | undefined =>
  error instanceof StoreUnavailable
    ? { outcome: "store-unavailable", error: error.message }
    : undefined

export const makeTaking = <Tx>(context: Context<Tx>) => {
  const { failpoint, log, settings, store, tally, works } = context

  /** What the store was asked and has not answered, though the sender waits no more. */
  let unanswered = 0

  /** Waits for the store as long as a sender may be left waiting. */
  const soon = async <A>(ask: () => Promise<A>): Promise<A> => {
    const text = `${store.name} has not answered for ${settings.storeWithinMs} ms`
    // Each question keeps its body in memory: there must not be any number of them.
    if (unanswered >= settings.maxInFlight) throw new StoreUnavailable(text)
    const stored = ask()
    return within(settings.storeWithinMs, stored, () => {
      const answered = () => {
        unanswered -= 1
      }
      unanswered += 1
      stored.then(answered, answered)
      return new StoreUnavailable(text)
    })
  }

  const keep = async (
    queue: Queue<Tx>,
    entry: NewEntry,
    state: "dead" | "quarantined",
    reason: unknown
  ): Promise<Taken> => {
    const error = errorText(reason)
    const { isNew, receipts } = await soon(() => queue.keep(entry, state, error))
    if (isNew) context.kept(entry, state, reason, receipts)
    return { outcome: "kept", receipts, error }
  }

  /** A store of keys alone cannot keep what failed: the sender has to. */
  const keepOrFail = async (
    entry: NewEntry,
    state: "dead" | "quarantined",
    reason: unknown
  ): Promise<Taken> =>
    store.queue === undefined
      ? { outcome: "failed", error: errorText(reason) }
      : keep(store.queue, entry, state, reason)

  const takeOnce = async (
    source: CompiledSource,
    entry: TypedEntry,
    work: RegisteredWork<Tx>
  ): Promise<Taken> => {
    const began = monotonicMs()
    const { withinMs } = work.options
    const late = new AbortController()
    const cancel = after(withinMs, () => late.abort(tookTooLong(withinMs)))
    const { signal } = late
    try {
      const once = store.once(
        entry,
        async (tx) => {
          // A store that was silent may come to it when the sender has been told to repeat.
          signal.throwIfAborted()
          failpoint("working-once")
          await work.run(tx, inboxEvent(entry, 1, signal))
          failpoint("worked-once")
        },
        { signal, withinMs }
      )
      // A store that has fallen silent must not keep the place of this request.
      const silence = `${store.name} has not answered for ${settings.storeWithinMs} ms`
      return await within(
        withinMs + settings.storeWithinMs,
        once,
        () => new StoreUnavailable(silence)
      )
    } catch (error) {
      const known = unavailable(error)
      if (known !== undefined) return known
      if (isPermanent(error)) return await keepOrFail(entry, "dead", error)
      return { outcome: "failed", error: errorText(error) }
    } finally {
      cancel()
      const ms = monotonicMs() - began
      if (ms > source.answerWithinMs) {
        const counts = tally.get(source.name)
        if (counts !== undefined) counts.slow += 1
        log({
          level: "warn",
          text: `the work of ${work.pattern} took ${Math.round(ms)} ms within the request, and ${source.name} waits ${source.answerWithinMs}: register it with process instead of once`,
          ...{ source: source.name, type: entry.type, key: entry.key, latencyMs: Math.round(ms) }
        })
      }
    }
  }

  const takeEntries = async (
    source: CompiledSource,
    entries: ReadonlyArray<TypedEntry>
  ): Promise<ReadonlyArray<Taken>> => {
    const found = entries.map((entry) => ({ entry, work: works.find(entry.type) }))
    const queued = found.flatMap(({ entry, work }) => (work?.mode === "process" ? [entry] : []))
    const taken: Array<Taken> = []
    if (queued.length > 0 && store.queue !== undefined) {
      const { put } = store.queue
      const stored = await soon(() => put(queued))
      for (const { isNew, receipts } of stored)
        taken.push({ outcome: isNew ? "stored" : "duplicate", receipts })
      context.wake()
    }
    // One after the other: each has a connection of its own while it works.
    for (const { entry, work } of found) {
      if (work === undefined) taken.push({ outcome: "ignored" })
      else if (work.mode === "once") taken.push(await takeOnce(source, entry, work))
    }
    return taken
  }

  /** A request that was verified. */
  const takeVerified = async (
    source: CompiledSource,
    request: ReceivedRequest
  ): Promise<{ readonly taken: ReadonlyArray<Taken>; readonly first: NewEntry | undefined }> => {
    const read = readRequest(source, request)
    const first = read.ok ? read.entries[0] : read.entry
    try {
      const events = read.ok ? read.entries.length : 1
      const wait = context.rateOf(source.name)?.take(events) ?? 0
      if (wait > 0) return { taken: [{ outcome: "rate-exceeded", retryAfterMs: wait }], first }
      if (!read.ok)
        return { taken: [await keepOrFail(read.entry, "quarantined", read.reason)], first }
      return { taken: await takeEntries(source, read.entries), first }
    } catch (error) {
      const known = unavailable(error)
      return { taken: [known ?? { outcome: "store-unavailable", error: errorText(error) }], first }
    } finally {
      failpoint("stored")
    }
  }

  const answerOf = (source: CompiledSource, taken: ReadonlyArray<Taken>): Answer => {
    const [first] = taken
    const outcome =
      first?.outcome === "rate-exceeded" ? first.outcome : worstOf(taken.map((one) => one.outcome))
    const retryAfterMs = taken.find((one) => one.retryAfterMs !== undefined)?.retryAfterMs
    return answer(outcome, outcome, {
      retries429: source.provider.retries429,
      wantsNoContent: source.provider.wantsNoContent === true,
      ...(retryAfterMs !== undefined && { retryAfterMs })
    })
  }

  const take = async (source: CompiledSource, request: ReceivedRequest): Promise<Answer> => {
    const began = monotonicMs()
    failpoint("received")
    const handshake = source.provider.handshake?.(request, wallMs())
    if (handshake !== undefined)
      return context.answered(source, {
        answer: { outcome: "handshake", ...handshake },
        latencyMs: monotonicMs() - began
      })
    if (request.method !== "POST")
      return context.answered(source, {
        answer: answer("not-post", "send webhooks with POST"),
        latencyMs: monotonicMs() - began
      })
    const { storeWithinMs } = settings
    const verified = await within(
      storeWithinMs,
      // It may throw, too.
      (async () => source.provider.verify(request, wallMs()))(),
      () => new Error(`the signature could not be checked for ${storeWithinMs} ms`)
    ).catch((error: unknown) => errorText(error))
    if (typeof verified === "string")
      return context.answered(source, {
        answer: answer("unverifiable"),
        latencyMs: monotonicMs() - began,
        error: verified
      })
    if (!verified.ok) {
      const counts = tally.get(source.name)
      if (counts !== undefined) increment(counts.problems, verified.problem)
      return context.answered(source, {
        answer: answer("refused", verified.problem),
        latencyMs: monotonicMs() - began,
        error: verified.text
      })
    }
    failpoint("verified")
    const { first, taken } = await takeVerified(source, request)
    const errors = taken.flatMap(({ error }) => (error === undefined ? [] : [error]))
    return context.answered(source, {
      answer: answerOf(source, taken),
      latencyMs: monotonicMs() - began,
      type: first?.type,
      key: first?.key,
      attempt: taken[0]?.receipts ?? 1,
      correlationId: correlationOf(request.headers, first?.key),
      error: errors[0]
    })
  }

  /** @throws nothing: what nobody has thought of is answered 500, so that the sender repeats. */
  return async (source: CompiledSource, request: ReceivedRequest): Promise<Answer> => {
    const began = monotonicMs()
    try {
      return await take(source, request)
    } catch (error) {
      return context.answered(source, {
        answer: answer("failed"),
        latencyMs: monotonicMs() - began,
        error: errorText(error)
      })
    }
  }
}

export const noteAnswer = <Tx>(
  { alerts, log, tally }: Pick<Context<Tx>, "alerts" | "log" | "tally">,
  source: string,
  { answer: given, latencyMs, ...rest }: Answered
): void => {
  const counts = tally.get(source)
  if (counts === undefined) return
  increment(counts.outcomes, given.outcome)
  increment(counts.statuses, given.status)
  observe(counts.answerTimes, latencyMs)
  const isOwn = !["refused", "handshake", "unverifiable"].includes(given.outcome)
  if (isOwn)
    alerts.add(source, {
      at: wallMs(),
      isSuccess: given.status < 300,
      // What a sender repeats says nothing of the work: that fails, or is tried again, by itself.
      isRetry: false,
      isPermanent: given.outcome === "kept",
      ms: latencyMs
    })
  const { outcome, status } = given
  log({
    level: status >= 500 ? "error" : outcome === "kept" || status >= 400 ? "warn" : "info",
    text: `${source}: ${outcome}${rest.type === undefined ? "" : ` ${rest.type}`}, answered ${status}`,
    ...{ source, outcome, status, latencyMs: Math.round(latencyMs * 10) / 10 },
    ...rest
  })
}
