import { Effect } from "effect"
import { readLayout } from "../../../broker/installed.ts"
import { requireIntake as requireStream } from "../../../broker/survey-intake.ts"
import { Refused } from "../../refused.ts"

/** Fails where the installation has no intake, or one of which no event is made. */
export const requireIntake = Effect.gen(function* () {
  yield* requireStream
  const { isSourced } = yield* readLayout
  if (isSourced) return
  return yield* new Refused({
    message: "no event is made of what comes in: run `petrel init` once more"
  })
})
