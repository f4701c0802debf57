import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { readLayout } from "../broker/installed.ts"
import { partitionOf } from "../domain/names.ts"

/** What waits for an endpoint, in messages. Retries that wait as schedules are in neither. */
export interface WaitingCounts {
  /** Handed out, in line, or waiting for a retry. */
  readonly queue: number
  readonly backlog: number
}

/** Counts what waits for an endpoint, as the leaders know it. */
export const countWaiting = Effect.fnUntraced(function* (tenant: string, id: string) {
  const { ask, jsm, names } = yield* Broker
  const { partitions } = yield* readLayout
  const partition = partitionOf(tenant, id, partitions)
  const count = (stream: string, subject: string) =>
    ask(`count what waits for ${tenant}/${id}`, () =>
      jsm.streams.info(stream, { subjects_filter: subject })
    ).pipe(Effect.map(({ state }) => state.subjects?.[subject] ?? 0))
  const { subjects } = names
  return (yield* Effect.all({
    queue: count(names.deliveries(partition), subjects.delivery(partition, tenant, id)),
    backlog: count(names.backlog(partition), subjects.backlog(partition, tenant, id))
  })) satisfies WaitingCounts
})
