import { essenceOf, fromEssence, isSettled } from "../fold/round.ts"

/** Events per block. A key has 8 bits for the event and 24 for the lane. */
export const eventsPerBlock = 256
/** A lane is an endpoint's round; 0 means none. */
export const maxLanes = 1 << 24

const smallest = 64

/**
 * The rounds of 256 consecutive events, by event and lane. An open-addressed table of 8 bytes a slot
 * while a state may change; sorted keys with a byte each once all rounds are settled.
 */
export class Block {
  #keys = new Uint32Array(smallest)
  #states = new Uint32Array(smallest)
  #packed: { readonly keys: Uint32Array; readonly essences: Uint8Array } | undefined
  #size = 0
  /** The sequence of its first event. */
  readonly first: number
  /** Rounds that have begun and not ended. */
  open = 0
  /** By event: the parts of its plan that were read, and marks; see plan-marks.ts. */
  readonly plans = new Uint16Array(eventsPerBlock)
  /** When it last changed, as a count of facts. */
  touched = 0

  constructor(first: number) {
    this.first = first
  }

  get isPacked(): boolean {
    return this.#packed !== undefined
  }

  get size(): number {
    return this.#size
  }

  /** The state of an event's round in a lane; 0 if there is none. */
  get(offset: number, lane: number): number {
    if (this.#packed !== undefined) this.#unpack()
    return this.#states[this.#slot(keyOf(offset, lane))] ?? 0
  }

  /** @param state not 0. */
  set(offset: number, lane: number, state: number): void {
    if (this.#packed !== undefined) this.#unpack()
    const key = keyOf(offset, lane)
    let slot = this.#slot(key)
    if (this.#keys[slot] === 0) {
      if (++this.#size * 4 > this.#keys.length * 3) {
        this.#resize(this.#keys.length * 2)
        slot = this.#slot(key)
      }
      this.#keys[slot] = key
    }
    this.#states[slot] = state
  }

  each(see: (offset: number, lane: number, state: number) => void): void {
    if (this.#packed !== undefined) {
      const { essences, keys } = this.#packed
      for (const [index, key] of keys.entries())
        see(key >>> 24, key & 0xffffff, fromEssence(essences[index] ?? 0))
      return
    }
    for (const [slot, key] of this.#keys.entries())
      if (key !== 0) see(key >>> 24, key & 0xffffff, this.#states[slot] ?? 0)
  }

  /** Drops all rounds that the predicate rejects. */
  keep(isKept: (offset: number, lane: number, state: number) => boolean): void {
    const kept: Array<readonly [offset: number, lane: number, state: number]> = []
    this.each((...slot) => {
      if (isKept(...slot)) kept.push(slot)
    })
    this.#packed = undefined
    this.#keys = new Uint32Array(smallest)
    this.#states = new Uint32Array(smallest)
    this.#size = 0
    for (const slot of kept) this.set(...slot)
  }

  /** Packs the block if all its rounds are settled; returns false if one is not. */
  pack(): boolean {
    if (this.#packed !== undefined) return true
    const keys = this.#keys.filter((key) => key !== 0).sort()
    const essences = new Uint8Array(keys.length)
    for (const [index, key] of keys.entries()) {
      const state = this.#states[this.#slot(key)] ?? 0
      if (!isSettled(state)) return false
      essences[index] = essenceOf(state)
    }
    this.#packed = { keys, essences }
    this.#keys = this.#states = new Uint32Array(0)
    return true
  }

  #unpack(): void {
    const packed = this.#packed
    if (packed === undefined) return
    this.#packed = undefined
    let length = smallest
    while (this.#size * 4 > length * 3) length *= 2
    this.#keys = new Uint32Array(length)
    this.#states = new Uint32Array(length)
    for (const [index, key] of packed.keys.entries()) {
      const slot = this.#slot(key)
      this.#keys[slot] = key
      this.#states[slot] = fromEssence(packed.essences[index] ?? 0)
    }
  }

  /** The slot of a key, or the one to put it in. */
  #slot(key: number): number {
    const mask = this.#keys.length - 1
    const mixed = Math.imul(key ^ (key >>> 16), 0x9e3779b1)
    let slot = (mixed ^ (mixed >>> 15)) & mask
    while (this.#keys[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & mask
    return slot
  }

  #resize(length: number): void {
    const [keys, states] = [this.#keys, this.#states]
    this.#keys = new Uint32Array(length)
    this.#states = new Uint32Array(length)
    for (const [from, key] of keys.entries())
      if (key !== 0) {
        const slot = this.#slot(key)
        this.#keys[slot] = key
        this.#states[slot] = states[from] ?? 0
      }
  }
}

/** Lanes begin at 1, so that no key is 0. */
const keyOf = (offset: number, lane: number): number => ((offset << 24) | lane) >>> 0
