/**
 * Assigns partitions to workers. All workers that know the same members compute the same result
 * without coordination. Each pair of partition and worker has a weight, and the heaviest pairs are
 * assigned first, while the worker has capacity. Shares differ by at most one partition, and few
 * partitions move when a worker joins or leaves.
 *
 * @param workers their ids, each once, in any order.
 * @returns the worker for each partition; empty without workers.
 */
export const shareOut = (
  partitions: number,
  workers: ReadonlyArray<string>
): ReadonlyArray<string> => {
  if (workers.length === 0) return []
  const pairs = Array.from({ length: partitions }, (_, partition) => partition).flatMap(
    (partition) =>
      workers.map((worker) => ({ partition, worker, weight: weight(partition, worker) }))
  )
  pairs.sort((a, b) => b.weight - a.weight || (a.worker < b.worker ? -1 : 1))

  const least = Math.floor(partitions / workers.length)
  /** Number of workers that may own one partition more than the others. */
  let more = partitions % workers.length
  const sizes = new Map<string, number>()
  const owners = new Map<number, string>()
  for (const { partition, worker } of pairs) {
    const size = sizes.get(worker) ?? 0
    if (owners.has(partition) || size > least || (size === least && more === 0)) continue
    if (size === least) more--
    sizes.set(worker, size + 1)
    owners.set(partition, worker)
  }
  return Array.from({ length: partitions }, (_, partition) => owners.get(partition) ?? "")
}

/**
 * FNV-1a (32 bit), finalized as in MurmurHash3. Without this, ids that differ only in their last
 * digit would have the same order of weights in every partition. Workers of different versions must
 * compute the same weights, so this function must not change.
 */
const weight = (partition: number, worker: string): number => {
  const key = `${partition}.${worker}`
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
