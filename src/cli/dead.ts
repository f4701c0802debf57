import { Command } from "effect/cli"
import { discard } from "./dead-discard.ts"
import { list } from "./dead-list.ts"
import { redeliver } from "./dead-redeliver.ts"
import { show } from "./dead-show.ts"

/** Commands for deliveries that ended without success. */
export const dead = Command.make("dead").pipe(
  Command.withDescription("See the deliveries that ended without success, and send them again"),
  Command.withSubcommands([list, show, redeliver, discard])
)
