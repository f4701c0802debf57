import { Command } from "effect/cli"
import { discard } from "./discard.ts"
import { list } from "./list.ts"
import { redeliver } from "./redeliver.ts"
import { show } from "./show.ts"

/** Commands for deliveries that ended without success. */
export const dead = Command.make("dead").pipe(
  Command.withDescription("See the deliveries that ended without success, and send them again"),
  Command.withSubcommands([list, show, redeliver, discard])
)
