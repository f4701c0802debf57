import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readWaitingRooms } from "../../broker/storage-limits.ts"
import { StreamRoom } from "../retry/stream-space.ts"

/**
 * Share of the room, and of each part of it, for deliveries that wait with their bodies: what waits
 * as a reference has the rest, however large bodies are.
 */
const forBodies = 0.5

/** The room of all backlogs. What is beyond an endpoint's share ends as `backlog-full`. */
export interface BacklogRoom extends Pick<StreamRoom, "stored"> {
  /**
   * True where an endpoint may take no more.
   *
   * @param isReference true for what waits without a body.
   */
  readonly isFull: (key: string, isReference: boolean) => boolean
}

/**
 * Makes the room of all backlogs, which is read at intervals until the scope closes.
 *
 * @param hasOtherTenants returns true where there is more than one tenant: a single one may take the
 *   whole room.
 */
export const makeBacklogRoom = Effect.fnUntraced(function* (
  partitions: number,
  hasOtherTenants: () => boolean
) {
  const { names } = yield* Broker
  const room = yield* StreamRoom.make({
    what: "backlogs",
    partitions,
    maxBytes: Effect.map(readWaitingRooms, ({ backlogs }) => backlogs),
    streamOf: names.backlog,
    subjectsOf: names.subjects.backlogOf
  })
  const backlogRoom: BacklogRoom = {
    isFull: (key, isReference) => room.isFull(key, isReference ? 1 : forBodies, !hasOtherTenants()),
    stored: (key, bytes) => room.stored(key, bytes)
  }
  return backlogRoom
})
