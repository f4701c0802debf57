import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { readLayout } from "../broker/installed.ts"
import { partitionOf } from "../domain/names.ts"
import type { Command, Withdrawal } from "./command.ts"
import { CommandPart } from "./command.ts"
import { askInParts } from "./exchange.ts"

/** How long the owner may take for its first part, and for each further one, ms. */
const patience = { first: 3_000, next: 10_000 }

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
  const { partitions } = yield* readLayout
  const partition = partitionOf(does.tenant, does.endpoint, partitions)
  const command: Command = { v: 1, by, does }
  let begun = false
  const parts = yield* askInParts(
    names.subjects.command(partition),
    command,
    (text) => Option.getOrUndefined(decode(text)),
    patience,
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
