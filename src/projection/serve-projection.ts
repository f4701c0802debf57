import { Effect } from "effect"
import { DeliveryLog } from "./delivery-log.ts"
import type { ProjectionOptions } from "./projection.ts"
import { startProjection } from "./projection.ts"
import { answerLog } from "./remote-log.ts"

/**
 * Runs a projection until the scope ends, and lets other processes ask it over NATS. Returns its log
 * for this process.
 */
export const serveProjection = Effect.fnUntraced(function* (options: ProjectionOptions) {
  const projection = yield* startProjection(options)
  yield* answerLog(projection)
  return DeliveryLog.of(projection.log)
})
