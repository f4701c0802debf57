import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { resumeBelowShare, waitingBytes } from "../../broker/storage-limits.ts"

/** What queues and backlogs take, and the limits of the other streams, bytes; undefined: unknown. */
export interface WaitingSize {
  readonly bytes: number | undefined
  readonly eventBytes: number | undefined
  readonly historyBytes: number | undefined
  readonly deadBytes: number | undefined
}

/** Streams that are counted at once: each answer names all endpoints that have something there. */
const countedAtOnce = 4

/** True where routing is held back, or is about to be. */
const isCrowded = ({ bytes, deadBytes, eventBytes, historyBytes }: WaitingSize): boolean => {
  const limit = waitingBytes({
    eventBytes: eventBytes ?? -1,
    historyBytes: historyBytes ?? -1,
    deadBytes: deadBytes ?? -1
  })
  return bytes !== undefined && limit !== undefined && bytes >= limit * resumeBelowShare
}

/**
 * Counts what waits in queues and backlogs by tenant, without schedules, whose subjects do not name
 * it. Counts only while routing is held back: else returns undefined.
 */
export const countByTenant = Effect.fnUntraced(function* (
  size: WaitingSize,
  partitions: ReadonlyArray<number>
) {
  if (!isCrowded(size)) return undefined
  const { names, streamInfo } = yield* Broker
  const byTenant = new Map<string, number>()
  const wanted = partitions.flatMap((index) => [
    [names.deliveries(index), names.subjects.deliveriesOf(index)] as const,
    [names.backlog(index), names.subjects.backlogOf(index)] as const
  ])
  yield* Effect.forEach(
    wanted,
    ([stream, subjects_filter]) =>
      Effect.map(
        streamInfo(`count what waits in ${stream}`, stream, { subjects_filter }),
        ({ state }) => {
          for (const [subject, count] of Object.entries(state.subjects ?? {})) {
            const tenant = subject.split(".").at(-2) ?? ""
            byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + count)
          }
        }
      ),
    { concurrency: countedAtOnce, discard: true }
  )
  return byTenant
})
