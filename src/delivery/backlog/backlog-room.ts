import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readWaitingRooms } from "../../broker/waiting-rooms.ts"
import { StreamRoom } from "./stream-room.ts"

/** The room of all backlogs. What is beyond an endpoint's share ends as `backlog-full`. */
export type BacklogRoom = Pick<StreamRoom, "isFull" | "stored">

/**
 * Makes the room of all backlogs, which is read at intervals until the scope closes.
 *
 * @param hasOtherTenants returns true where there is more than one tenant: a single one has no
 *   share, and its events are not routed where it fills the room (`routing/queue-brake.ts`).
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
    isFull: (key) => hasOtherTenants() && room.isFull(key),
    stored: (key, bytes) => room.stored(key, bytes)
  }
  return backlogRoom
})
