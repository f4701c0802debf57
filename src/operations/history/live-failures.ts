import type { Msg } from "@nats-io/transport-node"
import { Effect, Option, Queue, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { answeredFact } from "../../history/fact-json.ts"
import { parseFact } from "../../history/read.ts"

/** Failures that wait to be taken. Beyond, the newest are dropped. */
const maxWaiting = 1_000

/** A failure, and how many before it were dropped since the last one. */
export interface LiveFailure {
  readonly seq: number
  /** The fact, as it is answered. */
  readonly record: Readonly<Record<string, unknown>>
  readonly dropped: number
}

/**
 * Failures as the broker republishes them. Those that come while nobody listens are only in the
 * history; whoever takes them too slowly is told how many were dropped.
 */
export const liveFailures = (tenant: string | undefined, endpoint: string | undefined) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { flush, listen, names } = yield* Broker
      const subject = names.subjects.failures(tenant ?? "*", endpoint ?? "*", "*")
      const heard = yield* Queue.dropping<Msg>(maxWaiting)
      let dropped = 0
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          listen(subject, (message) => {
            if (!Queue.offerUnsafe(heard, message)) dropped++
          })
        ),
        (unlisten) => Effect.sync(unlisten)
      )
      yield* flush
      return Stream.fromQueue(heard).pipe(
        Stream.map((message): LiveFailure | undefined => {
          const stored = parseFact(message.string(), Number(message.headers?.get("Nats-Sequence")))
          if (Option.isNone(stored)) return undefined
          const since = dropped
          dropped = 0
          const { record, seq } = stored.value
          return { seq, record: answeredFact(record), dropped: since }
        }),
        Stream.filter((failure) => failure !== undefined)
      )
    })
  )
