import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import type { WriteError } from "../broker/write-errors.ts"
import { joinWriteErrors, watchEventWrites } from "../broker/write-errors.ts"
import { timers } from "../time/timers.ts"

/** How long the workers may take to answer, ms. */
const answersWithinMs = 1_000

/**
 * A worker's answer: in which streams it can store nothing. Neither question nor answer is stored,
 * since a heartbeat could not say that heartbeats cannot be stored.
 */
const FailingAnswer = Schema.Struct({
  v: Schema.Literal(1),
  worker: Schema.String,
  failing: Schema.Array(
    Schema.Struct({
      stream: Schema.String,
      reason: Schema.optionalKey(Schema.String),
      ms: Schema.optionalKey(Schema.Number)
    })
  )
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(FailingAnswer))

/** Says to whoever asks in which streams this worker can store nothing, as long as the scope lives. */
export const answerFailing = Effect.fnUntraced(function* (worker: string) {
  const { listen, names, say, unanswered } = yield* Broker
  const events = yield* watchEventWrites
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      listen(names.subjects.askWorkers, ({ reply }) => {
        if (reply === undefined) return
        const failing = joinWriteErrors([...events(), ...unanswered()])
        say(reply, JSON.stringify({ v: 1, worker, failing }))
      })
    ),
    (unlisten) => Effect.sync(unlisten)
  )
})

/**
 * Returns the streams in which the workers, or this process, can store nothing. Workers that do not
 * answer in time are left out.
 *
 * @param workers how many there are: all answers are in when so many have come.
 */
export const readFailing = Effect.fnUntraced(function* (workers: number) {
  const { inbox: newInbox, listen, names, say, unanswered } = yield* Broker
  const told = yield* Effect.callback<ReadonlyArray<WriteError>>((resume) => {
    const found = new Map<string, ReadonlyArray<WriteError>>()
    const inbox = newInbox()
    const end = () => {
      stop()
      resume(Effect.succeed([...found.values()].flat()))
    }
    // First, since it throws on a closed connection: the timer would then end what was never begun.
    const unlisten = listen(inbox, (message) => {
      const answer = Option.getOrUndefined(decode(message.string()))
      // The broker answers with an empty message if nobody listens.
      if (answer === undefined) return end()
      found.set(answer.worker, answer.failing)
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
  return joinWriteErrors([...told, ...unanswered()])
})
