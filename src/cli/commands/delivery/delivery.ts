import { Command } from "effect/cli"
import { deliveryResend } from "./resend.ts"
import { deliveryRetry } from "./retry-now.ts"
import { deliveryShow } from "./show.ts"

/** Commands for single deliveries. */
export const delivery = Command.make("delivery").pipe(
  Command.withDescription(
    "See what became of a delivery or what it waits for, try it now, or send it once more"
  ),
  Command.withSubcommands([deliveryShow, deliveryRetry, deliveryResend])
)
