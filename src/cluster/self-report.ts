import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import type { WriteError } from "../broker/write-errors.ts"
import { joinWriteErrors, watchEventWrites } from "../broker/write-errors.ts"
import { timers } from "../time/timers.ts"

/** How long the workers may take to answer, ms. */
const answersWithinMs = 1_000

/** What keeps a worker from its work. */
const Unready = Schema.Struct({
  /** One sentence each; at least one. */
  problems: Schema.Array(Schema.String),
  /** How long it has not been ready, ms. */
  ms: Schema.Number
})
export type Unready = typeof Unready.Type

/**
 * A worker's answer: in which streams it can store nothing, and what else keeps it from its work.
 * Neither question nor answer is stored, since a heartbeat could not say that heartbeats cannot be
 * stored.
 */
const SelfReport = Schema.Struct({
  v: Schema.Literal(1),
  worker: Schema.String,
  failing: Schema.Array(
    Schema.Struct({
      stream: Schema.String,
      reason: Schema.optionalKey(Schema.String),
      ms: Schema.optionalKey(Schema.Number)
    })
  ),
  /** Absent if it is ready, or is older than this field. */
  unready: Schema.optionalKey(Unready)
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(SelfReport))

/**
 * Says to whoever asks what this worker can store nothing in, and what keeps it from its work, as
 * long as the scope lives.
 *
 * @param unready returns what keeps it from its work; undefined if it is ready.
 */
export const answerSelfReport = Effect.fnUntraced(function* (
  worker: string,
  unready: () => Unready | undefined
) {
  const { listen, names, say, unanswered } = yield* Broker
  const events = yield* watchEventWrites
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      listen(names.subjects.askWorkers, ({ reply }) => {
        if (reply === undefined) return
        const failing = joinWriteErrors([...events(), ...unanswered()])
        say(reply, JSON.stringify({ v: 1, worker, failing, unready: unready() }))
      })
    ),
    (unlisten) => Effect.sync(unlisten)
  )
})

/** What workers say of themselves. */
export interface SelfReports {
  /** Streams in which the workers, or this process, can store nothing. */
  readonly failing: ReadonlyArray<WriteError>
  /** Workers that are not ready, in the order of their ids. */
  readonly unready: ReadonlyArray<Unready & { readonly worker: string }>
}

/**
 * Asks all workers what they say of themselves. Those that do not answer in time are left out.
 *
 * @param workers how many there are: all answers are in when so many have come.
 */
export const readSelfReports = Effect.fnUntraced(function* (workers: number) {
  const { inbox: newInbox, listen, names, say, unanswered } = yield* Broker
  const told = yield* Effect.callback<ReadonlyArray<typeof SelfReport.Type>>((resume) => {
    const found = new Map<string, typeof SelfReport.Type>()
    const inbox = newInbox()
    const end = () => {
      stop()
      resume(Effect.succeed([...found.values()]))
    }
    // First, since it throws on a closed connection: the timer would then end what was never begun.
    const unlisten = listen(inbox, (message) => {
      const answer = Option.getOrUndefined(decode(message.string()))
      // The broker answers with an empty message if nobody listens.
      if (answer === undefined) return end()
      found.set(answer.worker, answer)
      if (found.size >= workers) end()
    })
    const timer = timers.after(answersWithinMs, end)
    const stop = () => {
      timers.cancel(timer)
      unlisten()
    }
    say(names.subjects.askWorkers, "", inbox)
    return Effect.sync(stop)
  })
  return {
    failing: joinWriteErrors([...told.flatMap(({ failing }) => failing), ...unanswered()]),
    unready: told
      .flatMap(({ unready, worker }) => (unready === undefined ? [] : [{ ...unready, worker }]))
      .toSorted((one, other) => (one.worker < other.worker ? -1 : 1))
  } satisfies SelfReports
})
