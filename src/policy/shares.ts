/** Share of a capacity that those with more than an equal part may use. */
const looseShare = 7 / 8

/**
 * Returns how much of a capacity one of several that share it may use now, what it uses included:
 * an equal part, or what the others leave of all but an eighth where that is more, and never more
 * than is free. So one alone uses nearly all, what nobody else wants is used, and whoever comes
 * finds the last eighth free however long the others' requests take. With one sharer it is all.
 *
 * @param own what it uses.
 * @param used what all use.
 * @param sharers number of those that use some or wait, itself included.
 */
export const allowanceOf = (own: number, used: number, sharers: number, size: number): number => {
  const others = used - own
  return Math.min(size - others, Math.max(Math.ceil(size / sharers), looseShare * size - others))
}

/**
 * Bounds what is used of something, by key before in all. A key gets no more than is left free: one
 * alone at most half, two that want all of it a third each, and so there is always something left for
 * the next one (the dynamic threshold by which switches share their buffers).
 */
export class Shares {
  readonly #most: number
  readonly #mostOfOne: number
  readonly #used = new Map<string, number>()
  #total = 0

  /**
   * @param most of it in all.
   * @param mostOfOne of it for one key. (Default: half of it)
   */
  constructor(most: number, mostOfOne: number = most) {
    this.#most = most
    this.#mostOfOne = mostOfOne
  }

  /** How much is used by all keys. */
  get total(): number {
    return this.#total
  }

  /** How much a key uses. */
  usedBy(key: string): number {
    return this.#used.get(key) ?? 0
  }

  /** Returns whether a key may have so much more of it. */
  fits(key: string, amount = 1): boolean {
    const wanted = this.usedBy(key) + amount
    return wanted <= Math.min(this.#mostOfOne, this.#most - this.#total - amount)
  }

  /** Returns whether a key might have so much more of it while no other key had any. */
  couldHave(key: string, amount = 1): boolean {
    return this.usedBy(key) + amount <= Math.min(this.#mostOfOne, this.#most / 2)
  }

  /** Takes some of it for a key. Returns false, and takes nothing, if that is more than its share. */
  take(key: string, amount = 1): boolean {
    if (!this.fits(key, amount)) return false
    this.#used.set(key, this.usedBy(key) + amount)
    this.#total += amount
    return true
  }

  /** Gives back what was taken for a key. */
  give(key: string, amount = 1): void {
    const left = this.usedBy(key) - amount
    if (left > 0) this.#used.set(key, left)
    else this.#used.delete(key)
    this.#total -= amount
  }
}

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
