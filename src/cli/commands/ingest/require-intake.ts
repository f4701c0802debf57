import { Effect } from "effect"
import { Broker } from "../../../broker/broker.ts"
import { readLayout } from "../../../broker/installed.ts"
import { Refused } from "../../refused.ts"

/** Fails where the installation has no intake. */
export const requireIntake = Effect.gen(function* () {
  const { isSourced } = yield* readLayout
  const { names, streamNames } = yield* Broker
  if (isSourced && (yield* streamNames("list the streams")).includes(names.intake)) return
  return yield* new Refused({
    message: `this installation has no ${names.intake}: run \`petrel init\` once more, on nats-server 2.15 or newer`
  })
})
