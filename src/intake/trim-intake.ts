import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { ifFound, streamNotFound } from "../broker/broker-error.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { copiedOf } from "../broker/sources/links.ts"
import { firstIncoming } from "../broker/survey-intake.ts"

/** Time between two looks, ms. */
const pauseMs = 10_000
/** Of what INTAKE may hold: above it, its oldest events are removed. */
const fullShare = 7 / 8
/** Of the sequences from its oldest event on, how many are removed at a time. */
const removedShare = 1 / 4

/** Removes the oldest share of its events. Returns up to which sequence; undefined if none can be. */
const removeOldest = Effect.fnUntraced(function* (lastSeq: number) {
  const { names, purge, streamInfo } = yield* Broker
  // What is in quarantine may be older than any event, and stays.
  const { seq: first = lastSeq + 1 } = (yield* firstIncoming) ?? {}
  const { sources = [] } = yield* streamInfo("look at the events", names.events)
  const copied = copiedOf(sources.find(({ name }) => name === names.intake))
  const wanted = first + Math.ceil((lastSeq - first + 1) * removedShare)
  const seq = Math.min(wanted, copied + 1)
  if (seq <= first) return undefined
  for (const { src: filter } of names.subjects.incomingTransforms)
    yield* purge("free space for what comes in", names.intake, { filter, seq })
  return seq
})

/**
 * Removes the oldest events from INTAKE if it is nearly full, as far as EVENTS has copied them: what
 * comes in then would be refused. They are not recognised any more when they come again. What is in
 * quarantine stays.
 *
 * Goes on until the stream is not nearly full any more: if the oldest events are small and the
 * newest are large, one share frees little.
 *
 * @returns up to which sequence events were removed; undefined if none were.
 */
export const trimIntake = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  let removed: number | undefined
  while (true) {
    const intake = yield* ifFound(streamInfo("look at what came in", names.intake), streamNotFound)
    const { max_bytes = -1 } = intake?.config ?? {}
    if (intake === undefined || max_bytes <= 0) return removed
    const { bytes, last_seq } = intake.state
    if (bytes < fullShare * max_bytes) return removed
    const seq = yield* removeOldest(last_seq)
    // A broker that still shows what was removed is asked again at the next look.
    if (seq === undefined || seq <= (removed ?? 0)) return removed
    removed = seq
  }
})

/**
 * Keeps space free in INTAKE for as long as the scope lives and this worker is the one to do it.
 *
 * @param holds true while it is.
 */
export const keepIntakeSpace = (holds: () => boolean) => {
  const look = Effect.gen(function* () {
    if (!holds()) return
    const seq = yield* trimIntake
    const { names } = yield* Broker
    if (seq !== undefined)
      yield* Effect.logWarning(
        `${names.intake} is nearly full: what came in before ${seq} is not recognised any more when it comes again; give it more with \`petrel init --intake-bytes\``
      )
  })
  return keepGoing(
    "keep space for what comes in",
    Effect.andThen(look, Effect.sleep(pauseMs)),
    pauseMs,
    Effect.logWarning
  )
}
