/**
 * The workers that may send in each partition: the one that it is assigned to, and the one that still
 * has its lease.
 */
export type PartitionOwners = ReadonlyArray<ReadonlyArray<string>>

/**
 * Returns the part of a host's cap that one worker may use: the cap divided by the number of workers
 * that may send in partitions with endpoints of the host, rounded up. All of them together so exceed
 * the cap by at most their number less one.
 *
 * @param cap concurrent requests to the host.
 * @param endpoints hashes of the host's endpoints (`endpointHash`).
 * @param owners the workers that may send in each partition; empty while unknown.
 */
export const hostShare = (
  cap: number,
  endpoints: ReadonlyArray<number>,
  owners: PartitionOwners
): number => {
  const found = new Set<string>()
  if (owners.length > 0)
    for (const hash of endpoints)
      for (const worker of owners[hash % owners.length] ?? []) found.add(worker)
  return Math.ceil(cap / Math.max(1, found.size))
}

/** Share of a cap that those with more than an equal part may use. */
const looseShare = 7 / 8

/**
 * Returns true where one of several that share a cap may begin one more request: while it has less
 * than an equal part, or while at least an eighth is left. So one that is slow does not keep the
 * others out, and what nobody else wants is used.
 *
 * @param own its requests in flight.
 * @param sharers number of those that have requests in flight or wait, itself included.
 * @param used requests of all in flight.
 */
export const mayTakeMore = (own: number, sharers: number, used: number, share: number): boolean =>
  own < Math.ceil(share / sharers) || used < Math.floor(looseShare * share)
