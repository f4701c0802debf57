import { Effect } from "effect"
import type { Change } from "../../../broker/init.ts"
import { init as makeTopology } from "../../../broker/init.ts"
import type { Shares } from "../../../broker/storage-limits.ts"
import {
  defaultEventBytes,
  eventBytesToTry,
  readReservations,
  reservableBytes,
  sharesWithEvents
} from "../../../broker/storage-limits.ts"
import type { TopologyOptions } from "../../../broker/topology.ts"
import { bytesText } from "../../../text/quantities.ts"

/** The changes of the streams, and the sizes that were chosen, in words. */
export interface InitChanges {
  readonly changes: ReadonlyArray<Change>
  readonly sizes: string | undefined
}

const sizesText = (
  { deadBytes, eventBytes, historyBytes, intakeBytes }: Shares,
  first: number,
  left: number | undefined,
  replicas: number
): string => {
  const sizes = `events may take ${bytesText(eventBytes)}, the history ${bytesText(historyBytes)}, dead letters ${bytesText(deadBytes)} and what comes in ${bytesText(intakeBytes)}`
  const store = bytesText(2 * eventBytes)
  if (eventBytes < first) return `${sizes}: the broker cannot reserve more`
  return left === undefined
    ? `${sizes}: this is for a store of ${store} or more (max_file_store in the broker's configuration); a smaller one needs a smaller --event-bytes`
    : `${sizes}, of the ${bytesText(left)} that the account has left${replicas === 1 ? "" : " for each copy"}`
}

/**
 * Creates a new installation. By default, events get half of the account's remaining storage. If
 * the broker cannot reserve that much, a smaller size is tried: the store may be smaller than the
 * account's limit, and its size is unknown if the account has no limit.
 *
 * @param given sizes set by the user; never changed.
 */
export const makeWithSizes = Effect.fnUntraced(function* (
  options: TopologyOptions,
  given: Partial<Shares>
) {
  const left = reservableBytes(yield* readReservations(options.replicas), options.replicas)
  const first = given.eventBytes ?? (left === undefined ? defaultEventBytes : Math.floor(left / 2))
  const sizes = given.eventBytes === undefined ? eventBytesToTry(first) : [first]
  for (const [index, eventBytes] of sizes.entries()) {
    const shares = { ...sharesWithEvents(eventBytes), ...given }
    const changes = yield* makeTopology({ ...options, ...shares }).pipe(
      Effect.catchIf(
        (error) => error._tag === "NoSpaceError" && index < sizes.length - 1,
        () => Effect.succeed(undefined)
      )
    )
    if (changes !== undefined)
      return {
        changes,
        sizes: sizesText(shares, first, left, options.replicas)
      } satisfies InitChanges
  }
  return yield* Effect.die("the last size is made, or fails")
})
