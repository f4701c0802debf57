import { Cause, Effect, Queue, Schedule } from "effect"
import { Broker } from "../broker.ts"
import { BrokerError, isForbidden } from "../broker-error.ts"
import type { Divergence } from "./divergence.ts"
import { divergenceText } from "./divergence.ts"
import type { ReadLink } from "./links.ts"
import { lostOf, readLinks } from "./links.ts"
import type { SourceRecord } from "./record.ts"
import { compareNew, copyingStreams, readRecord, writeRecord } from "./record.ts"
import { restartSources } from "./restart.ts"

/** Interval at which sources are looked at, ms. */
const lookEveryMs = 15_000
/** Pause before the record is read again after a failure, ms. */
const retryPauseMs = 1_000

/**
 * Who leads a source, since when. A stream loses its end only with its server, and another leader,
 * or the same again, takes over then.
 */
const leadershipOf = ({ info, link }: ReadLink): string => {
  if (info instanceof BrokerError) return `${link.source} unread`
  const { cluster, created } = info
  const since = cluster !== undefined && "leader_since" in cluster ? cluster.leader_since : ""
  return [link.source, created, cluster?.leader, since].join(" ")
}

const isCompared =
  ({ divergences }: SourceRecord) =>
  ({ info, link }: ReadLink): boolean =>
    !(info instanceof BrokerError) && divergences.every(({ source }) => source !== link.source)

/**
 * Looks for sources that lost what was copied from them, at intervals and after each reconnect,
 * until it is interrupted, and starts them again where the broker lets this user change a stream.
 * Else it logs what an operator has to do, and the status shows it.
 *
 * Copies are compared where the broker may have lost something since the last comparison: after a
 * start, a reconnect, or a change of a source's leader. Otherwise a look costs one request per
 * source.
 *
 * @param holds whether this worker is still the one that looks.
 */
export const watchSources = Effect.fnUntraced(function* (holds: () => boolean) {
  const { onReconnect } = yield* Broker
  const wakes = yield* Queue.sliding<void>(1)
  let isUnsure = true
  let mayRestart = true
  const forget = onReconnect(() => {
    isUnsure = true
    mayRestart = true
    Queue.offerUnsafe(wakes, undefined)
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  let record: SourceRecord = yield* Effect.retry(readRecord, Schedule.spaced(retryPauseMs))
  let leaders = ""
  /** The problems that were logged. */
  let reported: ReadonlySet<string> = new Set()

  const keep = Effect.fnUntraced(function* (next: SourceRecord) {
    if (JSON.stringify(next) === JSON.stringify(record)) return
    yield* writeRecord(next)
    record = next
  })

  const restart = (divergences: ReadonlyArray<Divergence>) =>
    restartSources(divergences).pipe(
      Effect.andThen(
        Effect.logWarning("sources were started again where they lost something", {
          sources: divergences.map(({ source, start }) => `${source} at ${start}`)
        })
      ),
      Effect.andThen(Effect.sync(() => Queue.offerUnsafe(wakes, undefined))),
      Effect.catchIf(isForbidden, () =>
        Effect.andThen(
          Effect.sync(() => {
            mayRestart = false
          }),
          Effect.logError("this user may not start sources again: run `petrel init`")
        )
      )
    )

  const compare = Effect.gen(function* () {
    isUnsure = false
    const { record: found, unread } = yield* compareNew(record, mayRestart)
    const { divergences } = found
    yield* keep(found)
    const why = [
      ...divergences.map(divergenceText),
      ...[...unread].map(([, error]) => error.message)
    ]
    for (const text of why.filter((text) => !reported.has(text))) yield* Effect.logError(text)
    reported = new Set(why)
    if (mayRestart && divergences.length > 0) yield* restart(divergences)
  })

  const look = Effect.gen(function* () {
    if (!holds()) return
    const comparedUntil: Record<string, number> = { ...record.comparedUntil }
    const links: Array<ReadLink> = []
    for (const stream of yield* copyingStreams) {
      const { info, links: found } = yield* readLinks(stream)
      if (info.state.messages > 0)
        for (const { link } of found.filter(isCompared(record)))
          comparedUntil[link.source] = Date.parse(info.state.last_ts)
      links.push(...found)
    }
    const now = links.map(leadershipOf).join()
    const isChanged = now !== leaders
    const isLost = links.filter(isCompared(record)).some((one) => lostOf(one).length > 0)
    const isOpen = mayRestart && record.divergences.length > 0
    if (isUnsure || isChanged || isOpen || isLost) yield* compare
    else yield* keep({ ...record, comparedUntil })
    leaders = now
  })

  return yield* look.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterrupts(cause),
      (cause) =>
        Effect.andThen(
          Effect.sync(() => {
            isUnsure = true
          }),
          Effect.logWarning("sources could not be looked at; trying again", cause)
        )
    ),
    Effect.andThen(Effect.race(Queue.take(wakes), Effect.sleep(lookEveryMs))),
    Effect.forever
  )
}, Effect.scoped)
