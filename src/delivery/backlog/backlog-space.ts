import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readWaitingSpace } from "../../broker/storage-limits.ts"
import { StreamSpace } from "../retry/stream-space.ts"

/**
 * Share of the space, and of each part of it, for deliveries that wait with their bodies: what waits
 * as a reference has the rest, however large bodies are.
 */
const forBodies = 0.5

/** The space of all backlogs. What is beyond an endpoint's share ends as `backlog-full`. */
export interface BacklogSpace extends Pick<StreamSpace, "stored"> {
  /**
   * True where an endpoint may take no more.
   *
   * @param isReference true for what waits without a body.
   */
  readonly isFull: (key: string, isReference: boolean) => boolean
}

/**
 * Makes the space of all backlogs, which is read at intervals until the scope closes.
 *
 * @param hasOtherTenants returns true where there is more than one tenant: a single one may take the
 *   whole space.
 */
export const makeBacklogSpace = Effect.fnUntraced(function* (
  partitions: number,
  hasOtherTenants: () => boolean
) {
  const { names } = yield* Broker
  const space = yield* StreamSpace.make({
    what: "backlogs",
    partitions,
    maxBytes: Effect.map(readWaitingSpace, ({ backlogs }) => backlogs),
    streamOf: names.backlog,
    subjectsOf: names.subjects.backlogOf
  })
  const backlogSpace: BacklogSpace = {
    isFull: (key, isReference) =>
      space.isFull(key, isReference ? 1 : forBodies, !hasOtherTenants()),
    stored: (key, bytes) => space.stored(key, bytes)
  }
  return backlogSpace
})
