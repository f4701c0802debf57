/**
 * Shares partitions among workers so that all who know of the same workers come to the same result
 * without asking each other: each pair of partition and worker has a weight, and the heaviest pairs
 * are taken first, while the worker has room. Nobody's share is larger by more than one than
 * another's, and few partitions change hands when a worker comes or goes.
 *
 * @param workers their ids, each once, in any order.
 * @returns the worker for each partition; nothing where there are no workers.
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
  /** How many workers may have one more than the others. */
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
 * FNV-1a (32 bit), finished as MurmurHash3 does: ids that differ in their last digit only would
 * otherwise have weights in the same order for every partition. Workers of different versions share
 * out alike as long as this stays as it is.
 */
const weight = (partition: number, worker: string): number => {
  const key = `${partition}.${worker}`
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
