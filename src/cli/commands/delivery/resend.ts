import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { plainText } from "../../../history/line.ts"
import { ResentDelivery } from "../../../operations/deliveries/resend-delivery.ts"
import { byFlag, tenantFlag } from "../../flags/shared.ts"
import { connected, report } from "../../root-command.ts"
import { deliveryIdArgument } from "./show.ts"

/** Imported on demand: other commands do not need the engine. */
const operation = Effect.promise(() => import("../../../operations/deliveries/resend-delivery.ts"))

const encode = Schema.encodeSync(ResentDelivery)

/** Sends one delivery again. */
export const deliveryResend = Command.make(
  "resend",
  { id: deliveryIdArgument, tenant: tenantFlag, by: byFlag },
  Effect.fnUntraced(function* ({ by, id, tenant }) {
    const { resendDelivery } = yield* operation
    const sent = yield* resendDelivery(id, tenant, by).pipe(Effect.provide(connected))
    const shown = plainText(id)
    yield* report(
      encode(sent),
      `${shown} is sent again (replay ${sent.replay}): \`petrel delivery show ${shown}\` shows what comes of it`
    )
  })
).pipe(
  Command.withDescription(
    "Send a delivery once more, also one that succeeded, in a round of its own: the same id and bytes, attempts counted from 1"
  ),
  Command.withShortDescription("Send a delivery once more"),
  Command.withExamples([{ command: "petrel delivery resend acme.invoice-42.billing" }])
)
