import { Effect } from "effect"
import { fileErrorIn } from "./broker-error.ts"
import { natsClients } from "./clients.ts"
import { leaderAnswerMs } from "./survey-streams.ts"

/** A stream in which the broker stores nothing more, since writing to its disk failed. */
export interface WriteError {
  readonly stream: string
  /** As the operating system says it, such as `no space left on device`. */
  readonly reason: string
}

/** A sequence that no stream reaches. */
const beyond = Number.MAX_SAFE_INTEGER
/** Maximum concurrent requests to the broker. */
const maxConcurrentRequests = 16

/**
 * Asks for the error that keeps a stream from storing. After a failed write the broker answers no
 * publish to the stream until it is restarted, also once there is room, and the stream's info looks
 * well. A request to delete says why it cannot; it names a message that is not there, and so changes
 * nothing. Undefined also where this connection, or anybody, may not delete.
 */
const readWriteError = Effect.fnUntraced(function* (stream: string) {
  const { ask, jsm } = yield* natsClients
  const failure = yield* ask("ask for write errors", () =>
    jsm.streams.deleteMessage(stream, beyond, false)
  ).pipe(
    Effect.match({
      onFailure: ({ cause }) => (cause instanceof Error ? cause.message : ""),
      onSuccess: () => ""
    }),
    Effect.timeoutOrElse({ duration: leaderAnswerMs, orElse: () => Effect.succeed("") })
  )
  const reason = fileErrorIn(failure)
  return reason === undefined ? [] : [{ stream, reason } satisfies WriteError]
})

/** Asks for the write errors of streams. Needs the permission to delete messages. */
export const readWriteErrors = (streams: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(streams, readWriteError, { concurrency: maxConcurrentRequests }),
    (found) => found.flat()
  )
