import { Effect } from "effect"
import { readLayout, refuseChange, TopologyError } from "../broker/installed.ts"

/**
 * Returns the layout and a check that it has not changed: a message stored by another number of
 * partitions would lie where its owner does not look. Fails during a repartition.
 */
export const steadyLayout = Effect.gen(function* () {
  const { epoch } = yield* refuseChange
  const layout = yield* readLayout
  return {
    layout,
    unchanged: Effect.flatMap(refuseChange, (now) =>
      now.epoch === epoch
        ? Effect.void
        : Effect.fail(
            new TopologyError({
              message:
                "the number of partitions has been changed meanwhile: run the same command again"
            })
          )
    )
  }
})

export type SteadyLayout = Effect.Success<typeof steadyLayout>
