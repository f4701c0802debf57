import { firstRound } from "../../domain/delivery.ts"
import { essenceOf, fromEssence, isSettled } from "../fold/round.ts"

/** Events per block. A key has 8 bits for the event and 24 for the lane. */
export const eventsPerBlock = 256
/** A lane is an endpoint's round; 0 means none. */
const maxLanes = 1 << 24

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
  /** By event: the parts of its plan that were read, and marks (`ledger.ts`). */
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

/** LaneNumbers begin at 1, so that no key is 0. */
const keyOf = (offset: number, lane: number): number => ((offset << 24) | lane) >>> 0

/** An endpoint and a round, shared by the deliveries of many events. */
interface AuditLane {
  readonly tenant: string
  readonly endpoint: string
  readonly round: string
}

const laneKeyOf = (tenant: string, endpoint: string, round: string): string =>
  round === firstRound ? `${tenant}.${endpoint}` : `${tenant}.${endpoint}.${round}`

/**
 * Numbers lanes from 1, so that each name is stored once. A number is freed with its last use,
 * because most later rounds have a single delivery.
 */
export class LaneNumbers {
  readonly #numbers = new Map<string, number>()
  readonly #lanes: Array<AuditLane | undefined> = []
  /** By number - 1: how often it is in use. */
  readonly #uses: Array<number> = []
  readonly #free: Array<number> = []

  get size(): number {
    return this.#numbers.size
  }

  find(tenant: string, endpoint: string, round: string): number | undefined {
    return this.#numbers.get(laneKeyOf(tenant, endpoint, round))
  }

  /** Returns the number of a lane, and assigns one if it has none. */
  of(tenant: string, endpoint: string, round: string): number {
    const key = laneKeyOf(tenant, endpoint, round)
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const number = this.#free.pop() ?? this.#lanes.length + 1
    if (number >= maxLanes)
      throw new RangeError(
        `more than ${maxLanes} rounds of endpoints in one audit: audit a shorter range with \`since\` and \`until\``
      )
    this.#lanes[number - 1] = { tenant, endpoint, round }
    this.#uses[number - 1] = 0
    this.#numbers.set(key, number)
    return number
  }

  use(number: number): void {
    this.#uses[number - 1] = (this.#uses[number - 1] ?? 0) + 1
  }

  /** Ends a {@link use}. After the last one the number is free for another lane. */
  release(number: number): void {
    const left = (this.#uses[number - 1] ?? 0) - 1
    this.#uses[number - 1] = left
    if (left > 0) return
    const { endpoint, round, tenant } = this.get(number)
    this.#numbers.delete(laneKeyOf(tenant, endpoint, round))
    this.#lanes[number - 1] = undefined
    this.#free.push(number)
  }

  get(number: number): AuditLane {
    const lane = this.#lanes[number - 1]
    if (lane === undefined) throw new RangeError(`there is no lane ${number}`)
    return lane
  }
}

/**
 * When the event at each sequence was stored, ms since the epoch, in 8 bytes each. A fact with
 * another time is about another event, which had the sequence before the broker lost it.
 */
export class EventTimes {
  readonly #blocks = new Map<number, Float64Array>()

  /** 0 if unknown. */
  of(seq: number): number {
    return this.#blocks.get(Math.floor(seq / eventsPerBlock))?.[seq % eventsPerBlock] ?? 0
  }

  set(seq: number, at: number): void {
    const index = Math.floor(seq / eventsPerBlock)
    const block = this.#blocks.get(index) ?? new Float64Array(eventsPerBlock)
    this.#blocks.set(index, block)
    block[seq % eventsPerBlock] = at
  }

  /** True if an event of another time is known at the sequence. */
  isOther(seq: number, at: number): boolean {
    const known = this.of(seq)
    return known !== 0 && known !== at
  }

  /** Drops the times of one of the ledger's blocks of events. */
  forget(block: number): void {
    this.#blocks.delete(block)
  }
}

/*
 * The state of an event's plan in 16 bits: three marks, and the number of parts that were read.
 */

/** The event was read. */
export const isThere = 1 << 15
/** The part that ends the plan was read. */
export const isComplete = 1 << 14
const lacksPart = 1 << 13
const parts = lacksPart - 1

/** True if a part of the plan was read. */
export const hasBegun = (plan: number): boolean => (plan & ~isThere) !== 0

/** True if the plan is complete. Also for 0: an event that is not in the range. */
export const isPlanned = (plan: number): boolean =>
  plan === 0 || (plan & (isComplete | lacksPart)) === isComplete

/** True if a part (from 0) was read before. */
export const hasPart = (plan: number, part: number): boolean => part < (plan & parts)

/** The plan after a further part. */
export const afterPart = (plan: number, part: number, last: boolean): number => {
  const lacks = part > (plan & parts) ? lacksPart : 0
  return (plan & ~parts) | lacks | (last ? isComplete : 0) | Math.min(part + 1, parts)
}

/** Identifies a dead letter. Its sequence alone does not: a DEAD that lost its end reuses them. */
export interface LetterOf {
  /** Its sequence in DEAD. */
  readonly dead: number
  readonly eventSeq: number
  readonly lane: number
}

const nameOf = ({ dead, eventSeq, lane }: LetterOf): string => `${dead}.${eventSeq}.${lane}`

/** The dead letters that facts name. */
export class DeadEnds {
  readonly #ends = new Map<string, DeadEnd>()
  /** Those that were discarded. */
  readonly #discarded = new Map<string, LetterOf>()

  /** @param at when the fact was stored, ms since the epoch. */
  add(letter: LetterOf, at: number): void {
    const name = nameOf(letter)
    if (!this.#discarded.has(name) && !this.#ends.has(name)) this.#ends.set(name, { ...letter, at })
  }

  /** A discarded dead letter need not be in DEAD any more. */
  discard(letter: LetterOf): void {
    const name = nameOf(letter)
    this.#ends.delete(name)
    this.#discarded.set(name, letter)
  }

  /** Drops the dead letters of some events. */
  forget(isGone: (eventSeq: number) => boolean): void {
    for (const [name, { eventSeq }] of this.#ends) if (isGone(eventSeq)) this.#ends.delete(name)
    for (const [name, { eventSeq }] of this.#discarded)
      if (isGone(eventSeq)) this.#discarded.delete(name)
  }

  isDiscarded(letter: LetterOf): boolean {
    return this.#discarded.has(nameOf(letter))
  }

  has(letter: LetterOf): boolean {
    return this.#ends.has(nameOf(letter))
  }

  all(): Iterable<DeadEnd> {
    return this.#ends.values()
  }

  get size(): number {
    return this.#ends.size
  }
}

export interface DeadEnd extends LetterOf {
  /** When the fact was stored, ms since the epoch. */
  readonly at: number
}
