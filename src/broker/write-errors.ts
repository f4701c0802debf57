import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { fileErrorIn } from "./broker-error.ts"
import { leaderAnswerMs } from "./survey-streams.ts"

/** A stream in which the broker stores nothing more, as after a failed write to its disk. */
export interface WriteError {
  readonly stream: string
  /** As the operating system says it, such as `no space left on device`; undefined if unknown. */
  readonly reason?: string | undefined
  /** How long it has acknowledged nothing that was to be stored there, ms; undefined if unknown. */
  readonly ms?: number | undefined
}

/** A sequence that no stream reaches. */
const beyond = Number.MAX_SAFE_INTEGER
/** Maximum concurrent requests to the broker. */
const maxConcurrentRequests = 16
/** Pause between two questions of a worker, ms. */
const askedEvery = 10_000

/**
 * Asks for the error that keeps a stream from storing. After a failed write the broker answers no
 * publish to the stream until it is restarted, also once there is space, and the stream's info looks
 * well. A request to delete says why it cannot; it names a message that is not there, and so changes
 * nothing. Returns "" where there is no error, or nobody may delete, and undefined without an answer,
 * as where this connection may not delete.
 */
const readWriteError = Effect.fnUntraced(function* (stream: string) {
  const { deleteMessage } = yield* Broker
  return yield* deleteMessage("ask for write errors", stream, beyond).pipe(
    Effect.match({
      onFailure: ({ cause, code }) =>
        code === undefined
          ? undefined
          : (fileErrorIn(cause instanceof Error ? cause.message : "") ?? ""),
      onSuccess: () => ""
    }),
    Effect.timeoutOrElse({ duration: leaderAnswerMs, orElse: () => Effect.succeed(undefined) })
  )
})

/** Asks for the write errors of streams. Needs the permission to delete messages. */
export const readWriteErrors = (streams: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(
      streams,
      (stream) => Effect.map(readWriteError(stream), (reason) => ({ stream, reason })),
      { concurrency: maxConcurrentRequests }
    ),
    (all): ReadonlyArray<WriteError> => all.filter(({ reason = "" }) => reason !== "")
  )

/**
 * Asks again and again for the write error of the event stream, which a worker does not publish to,
 * as long as the scope lives. Not where it has copies: each request would go through all of them.
 * Ends where this user may not ask, since each attempt is a line in the broker's log.
 *
 * @returns what was found last.
 */
export const watchEventWrites = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  let found: ReadonlyArray<WriteError> = []
  const look = Effect.gen(function* () {
    const { config } = yield* streamInfo("look at the events", names.events)
    if (config.num_replicas !== 1) {
      found = []
      return true
    }
    const reason = yield* readWriteError(names.events)
    if (reason === undefined) return false
    found = reason === "" ? [] : [{ stream: names.events, reason }]
    return true
  }).pipe(Effect.orElseSucceed(() => true))
  yield* Effect.sleep(askedEvery).pipe(
    Effect.andThen(look),
    Effect.repeat({ while: (goesOn) => goesOn }),
    Effect.forkScoped
  )
  return () => found
})

/** Puts together what several have found, one entry for each stream, with the most that is known. */
export const joinWriteErrors = (all: Iterable<WriteError>): ReadonlyArray<WriteError> => {
  const joined = new Map<string, WriteError>()
  for (const { ms, reason, stream } of all) {
    const known = joined.get(stream)
    const longest = Math.max(ms ?? 0, known?.ms ?? 0)
    joined.set(stream, {
      stream,
      reason: known?.reason ?? reason,
      ms: longest === 0 ? undefined : longest
    })
  }
  return [...joined.values()]
}
