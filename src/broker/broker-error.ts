import { JetStreamApiError } from "@nats-io/jetstream"
import { PermissionViolationError } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"

/** The broker cannot be used at all: it is unreachable, too old, or has no JetStream. */
export class BrokerUnusable extends Schema.TaggedError<BrokerUnusable>()("BrokerUnusable", {
  message: Schema.String
}) {}

/** JetStream's error codes for a request that it cannot read: bad request, invalid JSON. */
const senseless: ReadonlySet<number> = new Set([10003, 10025])

/** What a client is told whose user may not even hear answers where Petrel's clients do. */
const notHeard = 'Permissions Violation for Subscription to "_INBOX.'

/** One request to the broker failed. */
export class BrokerError extends Schema.TaggedError<BrokerError>()("BrokerError", {
  operation: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    const { cause, operation } = this
    // A test runner copies errors without their classes.
    const why = cause instanceof Error ? cause.message : JSON.stringify(cause)
    return why.startsWith(notHeard)
      ? `${operation}: this user may not receive answers: commands need a user of Petrel's account, a tenant's user publishes or asks the API; see nats.conf`
      : `${operation}: ${why}`
  }
  /** True if the request itself is wrong, so that it fails however often it is made. */
  get isSenseless(): boolean {
    const { cause, code } = this
    return cause instanceof RangeError || (code !== undefined && senseless.has(code))
  }
  /** The err_code of JetStream's answer (10059: stream not found), if it answered with one. */
  get code(): number | undefined {
    return this.cause instanceof JetStreamApiError ? this.cause.code : undefined
  }
}

/** JetStream's error codes for a missing message. */
const noSuchMessage: ReadonlySet<number> = new Set([10037, 10043, 10057])

/** Returns the reason of a failed operation on a file: `write /data/9.blk: no space left on device`. */
export const fileErrorIn = (text: string): string | undefined =>
  /^(?:close|create|mkdir|open|read|remove|rename|sync|truncate|write) .+: ([^:]+)$/.exec(text)?.[1]

/**
 * True if a request failed because its message does not exist, or no longer. A disk that fails has
 * the same code.
 */
export const isNoSuchMessage = ({ cause, code }: BrokerError): boolean =>
  code !== undefined &&
  noSuchMessage.has(code) &&
  !(cause instanceof Error && fileErrorIn(cause.message) !== undefined)

/** True if the broker does not let this user make the request. */
export const isForbidden = ({ cause }: BrokerError): boolean =>
  cause instanceof Error &&
  [cause, cause.cause].some((one) => one instanceof PermissionViolationError)

/** Runs a request. A rejection becomes a BrokerError that names the operation. */
export const ask = <A>(operation: string, run: () => Promise<A>): Effect.Effect<A, BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => new BrokerError({ operation, cause }) })

/** How long a question is unanswered before it is asked again, ms, and how often it is. */
const askAgainAfterMs = 2_000
const maxAsked = 4

/**
 * Repeats a question that changes nothing every 2 s while it is unanswered, and the first result
 * counts: a stream without a leader drops requests, and answers only those that come once it has
 * one. Waits no longer than the first of them does.
 */
export const askForState = <A>(
  question: Effect.Effect<A, BrokerError>
): Effect.Effect<A, BrokerError> => {
  const asking = (times: number): Effect.Effect<A, BrokerError> =>
    times === 0
      ? question
      : Effect.raceFirst(
          question,
          Effect.delay(
            Effect.suspend(() => asking(times - 1)),
            askAgainAfterMs
          )
        )
  return asking(maxAsked)
}

export const streamNotFound = 10059
export const consumerNotFound = 10014
export const consumerExists = 10148
/** The consumer is to have more copies than its stream, which may just be getting them. */
export const exceedsStreamCopies = 10126

/** Turns the failure with the code `notFound` into undefined. */
export const ifFound = <A, R>(effect: Effect.Effect<A, BrokerError, R>, notFound: number) =>
  effect.pipe(
    Effect.catchIf(
      (error) => error.code === notFound,
      () => Effect.succeed(undefined)
    )
  )
