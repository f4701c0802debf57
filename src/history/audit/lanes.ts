import { firstRound } from "../../domain/delivery.ts"
import { maxLanes } from "./block.ts"

/** An endpoint's round: what deliveries of different events have in common. */
export interface Lane {
  readonly tenant: string
  readonly endpoint: string
  readonly round: string
}

const keyOf = (tenant: string, endpoint: string, round: string): string =>
  round === firstRound ? `${tenant}.${endpoint}` : `${tenant}.${endpoint}.${round}`

/**
 * Numbers for lanes, from 1, so that each name is kept once; and no longer than anything is kept in
 * it, for most further rounds are of one delivery.
 */
export class Lanes {
  readonly #numbers = new Map<string, number>()
  readonly #lanes: Array<Lane | undefined> = []
  /** By number - 1: in how many places it stands. */
  readonly #uses: Array<number> = []
  readonly #free: Array<number> = []

  get size(): number {
    return this.#numbers.size
  }

  find(tenant: string, endpoint: string, round: string): number | undefined {
    return this.#numbers.get(keyOf(tenant, endpoint, round))
  }

  /** The number of a lane; a new one where it has none. */
  of(tenant: string, endpoint: string, round: string): number {
    const key = keyOf(tenant, endpoint, round)
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const number = this.#free.pop() ?? this.#lanes.length + 1
    if (number >= maxLanes)
      throw new RangeError(
        `more than ${maxLanes} rounds of endpoints in one audit: audit a shorter range with --since and --until`
      )
    this.#lanes[number - 1] = { tenant, endpoint, round }
    this.#uses[number - 1] = 0
    this.#numbers.set(key, number)
    return number
  }

  use(number: number): void {
    this.#uses[number - 1] = (this.#uses[number - 1] ?? 0) + 1
  }

  /** Takes back a {@link use}; after the last one the number is another lane's. */
  release(number: number): void {
    const left = (this.#uses[number - 1] ?? 0) - 1
    this.#uses[number - 1] = left
    if (left > 0) return
    const { endpoint, round, tenant } = this.get(number)
    this.#numbers.delete(keyOf(tenant, endpoint, round))
    this.#lanes[number - 1] = undefined
    this.#free.push(number)
  }

  get(number: number): Lane {
    const lane = this.#lanes[number - 1]
    if (lane === undefined) throw new RangeError(`there is no lane ${number}`)
    return lane
  }
}
