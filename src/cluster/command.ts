import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { readPartitions } from "../broker/installed.ts"
import { partitionOf } from "../domain/names.ts"
import { ErrorClass, Redirect, Response, Verdict } from "../domain/outcome.ts"
import { WaitingFilter } from "../domain/retry-record.ts"
import { Timestamp } from "../domain/timestamp.ts"
import { askInParts } from "./exchange.ts"

/** Which delivery is meant, whatever its round. */
const EventOf = Schema.Struct({ eventSeq: Schema.Int, eventAt: Timestamp })

/** Asks the owner of a partition to try an endpoint, or one delivery of it, now. */
export const RetryNow = Schema.TaggedStruct("RetryNow", {
  tenant: Schema.String,
  endpoint: Schema.String,
  /** (Default: all deliveries that wait for the endpoint) */
  event: Schema.optionalKey(EventOf),
  /** Only those of them that it means. What is in the endpoint's backlog is counted whatever it is. */
  filter: Schema.optionalKey(WaitingFilter),
  /** Counts what would go on, and lets nothing go on. (Default: false) */
  dryRun: Schema.optionalKey(Schema.Boolean),
  /** Does not wait for the end of the receiver's Retry-After. */
  ignoreRetryAfter: Schema.Boolean,
  /** The job that asks: where it asks for the same again soon, it gets the same answer. */
  job: Schema.optionalKey(Schema.String)
})
export type RetryNow = typeof RetryNow.Type

/** Asks the owner of a partition to send one event to an endpoint that nobody has published. */
export const SendTest = Schema.TaggedStruct("SendTest", {
  tenant: Schema.String,
  endpoint: Schema.String,
  id: Schema.String,
  type: Schema.String,
  body: Schema.String,
  contentType: Schema.String
})
export type SendTest = typeof SendTest.Type

/** What somebody wants of the owner of a partition, beyond an answer. */
export const Command = Schema.Struct({
  v: Schema.Literal(1),
  /** Who asks: `user@host`, or the value of `--by`. */
  by: Schema.String,
  does: Schema.Union([RetryNow, SendTest])
})
export type Command = typeof Command.Type

/** Ends a command: who gave it has left. */
export const Withdrawal = Schema.Struct({
  v: Schema.Literal(1),
  /** The subject to which the command is answered, which nobody else knows. */
  withdraws: Schema.String
})
export type Withdrawal = typeof Withdrawal.Type

/** What became of deliveries that were to be tried now. */
export const Retried = Schema.Struct({
  /** Waited for their next attempt, and go on now. */
  moved: Schema.Int.annotateKey({ description: "Deliveries that are due now." }),
  /** Are being attempted, wait for their turn in memory, or were attempted since. */
  inFlight: Schema.Int.annotateKey({ description: "Deliveries that were under way." }),
  /** Were in the endpoint's backlog, and go on when the endpoint takes them. */
  inBacklog: Schema.Int.annotateKey({ description: "Deliveries that wait in the backlog." }),
  /** Stay as they are: the backlog is full, or the broker refused. */
  left: Schema.Int.annotateKey({ description: "Deliveries that wait as before." })
})
export type Retried = typeof Retried.Type

/** A test event's request and answer. */
export const TestExchange = Schema.Struct({
  url: Schema.String.annotateKey({ description: "Where the request went." }),
  /** Names and values alternate. The values of the endpoint's own headers are masked. */
  headers: Schema.Array(Schema.String).annotateKey({ description: "The headers that were sent." }),
  /** When the request began, ms since the epoch. */
  at: Timestamp.annotateKey({ description: "When it was sent." }),
  status: Schema.optionalKey(Schema.Int).annotateKey({ description: "The status of the answer." }),
  error: Schema.optionalKey(
    Schema.Struct({
      class: ErrorClass.annotateKey({ description: "The class of the error." }),
      message: Schema.String.annotateKey({ description: "What the error says." })
    })
  ).annotateKey({ description: "Why there was no complete answer." }),
  response: Schema.optionalKey(Response).annotateKey({ description: "The answer." }),
  /** The redirects that were followed; status and answer are those of the last request. */
  redirects: Schema.optionalKey(Schema.Array(Redirect)).annotateKey({
    description: "The redirects that were followed, in order."
  }),
  durationMs: Schema.Number.annotateKey({ description: "How long the request took, ms." }),
  /** Absent where a kept connection was used. */
  connectMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "How long it took to connect, ms."
  }),
  firstByteMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "When the answer began, ms after the request."
  }),
  /** What such an answer would be for a delivery. */
  verdict: Verdict.annotateKey({ description: "What Petrel makes of the answer." })
})
export type TestExchange = typeof TestExchange.Type

/** A part of the owner's answer to a command. Parts before the last one say that it is at work. */
export const CommandPart = Schema.Struct({
  v: Schema.Literal(1),
  worker: Schema.String,
  part: Schema.Int,
  isLast: Schema.Boolean,
  /** In the last part, and in others so far. */
  retried: Schema.optionalKey(Retried),
  /** In the last part. */
  tested: Schema.optionalKey(TestExchange),
  /** In the last part: why the command failed. */
  problem: Schema.optionalKey(Schema.String)
})
export type CommandPart = typeof CommandPart.Type

/** How long the owner may take for its first part, and for each further one, ms. */
const timeouts = { first: 3_000, next: 10_000 }

/** The owner of an endpoint's partition did not carry a command out, or not to its end. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  partition: Schema.Int,
  /** Why, if the owner has said so. */
  problem: Schema.optional(Schema.String),
  /** True where the owner had begun. */
  begun: Schema.Boolean
}) {
  override get message() {
    if (this.problem !== undefined) return `the worker could not do it: ${this.problem}`
    return this.begun
      ? `the worker that owns partition ${this.partition} stopped answering in the middle of it: give the command again`
      : `no worker that owns partition ${this.partition} answers, so nothing was done: \`petrel workers\` shows who is there`
  }
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(CommandPart))

/**
 * Has the owner of an endpoint's partition do something, and returns the last part of its answer. An
 * owner whose asker is interrupted stops doing it. Fails with CommandFailed.
 *
 * @param onPart called with each part as it comes.
 */
export const commandOwner = Effect.fnUntraced(function* (
  does: Command["does"],
  by: string,
  onPart?: (part: CommandPart) => void
) {
  const { names } = yield* Broker
  const partitions = yield* readPartitions
  const partition = partitionOf(does.tenant, does.endpoint, partitions)
  const command: Command = { v: 1, by, does }
  let begun = false
  const parts = yield* askInParts(
    names.subjects.command(partition),
    command,
    (text) => Option.getOrUndefined(decode(text)),
    timeouts,
    (part) => {
      begun = true
      onPart?.(part)
    },
    (withdraws): Withdrawal => ({ v: 1, withdraws })
  )
  const last = parts?.at(-1)
  if (last === undefined) return yield* new CommandFailed({ partition, problem: undefined, begun })
  const { problem } = last
  if (problem !== undefined) return yield* new CommandFailed({ partition, problem, begun })
  return last
})
