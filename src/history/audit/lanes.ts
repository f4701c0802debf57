import { firstRound } from "../../domain/delivery.ts"
import { mostLanes } from "./block.ts"

/** An endpoint's round: what deliveries of different events have in common. */
export interface Lane {
  readonly tenant: string
  readonly endpoint: string
  readonly round: string
}

/** Numbers for lanes, from 1, so that each name is kept once. */
export class Lanes {
  readonly #numbers = new Map<string, number>()
  readonly #lanes: Array<Lane> = []

  of(tenant: string, endpoint: string, round: string): number {
    const key = round === firstRound ? `${tenant}.${endpoint}` : `${tenant}.${endpoint}.${round}`
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const number = this.#lanes.push({ tenant, endpoint, round })
    if (number >= mostLanes)
      throw new RangeError(
        `more than ${mostLanes} rounds of endpoints in one audit: audit a shorter range with --since and --until`
      )
    this.#numbers.set(key, number)
    return number
  }

  get(number: number): Lane {
    const lane = this.#lanes[number - 1]
    if (lane === undefined) throw new RangeError(`there is no lane ${number}`)
    return lane
  }
}
