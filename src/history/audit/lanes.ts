import { firstRound } from "../../domain/delivery.ts"
import { maxLanes } from "./block.ts"

/** An endpoint and a round, shared by the deliveries of many events. */
export interface AuditLane {
  readonly tenant: string
  readonly endpoint: string
  readonly round: string
}

const keyOf = (tenant: string, endpoint: string, round: string): string =>
  round === firstRound ? `${tenant}.${endpoint}` : `${tenant}.${endpoint}.${round}`

/**
 * Numbers lanes from 1, so that each name is stored once. A number is freed with its last use,
 * because most later rounds have a single delivery.
 */
export class Lanes {
  readonly #numbers = new Map<string, number>()
  readonly #lanes: Array<AuditLane | undefined> = []
  /** By number - 1: how often it is in use. */
  readonly #uses: Array<number> = []
  readonly #free: Array<number> = []

  get size(): number {
    return this.#numbers.size
  }

  find(tenant: string, endpoint: string, round: string): number | undefined {
    return this.#numbers.get(keyOf(tenant, endpoint, round))
  }

  /** Returns the number of a lane, and assigns one if it has none. */
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

  /** Ends a {@link use}. After the last one the number is free for another lane. */
  release(number: number): void {
    const left = (this.#uses[number - 1] ?? 0) - 1
    this.#uses[number - 1] = left
    if (left > 0) return
    const { endpoint, round, tenant } = this.get(number)
    this.#numbers.delete(keyOf(tenant, endpoint, round))
    this.#lanes[number - 1] = undefined
    this.#free.push(number)
  }

  get(number: number): AuditLane {
    const lane = this.#lanes[number - 1]
    if (lane === undefined) throw new RangeError(`there is no lane ${number}`)
    return lane
  }
}
