import { nobody } from "../../domain/token.ts"
import type { Summable } from "./summary.ts"
import { Spread, type Spreadable } from "./summary.ts"
import type { Countable, Totals } from "./totals.ts"
import { addTotals, afterCounting, noTotals } from "./totals.ts"

/** What totals are grouped by. */
export type Grouping = "endpoint" | "type"

/** A fact that is counted for an endpoint or a type. */
export interface Groupable extends Countable, Omit<Summable, "kind" | "plan"> {
  readonly tenant: string
  readonly endpoint?: string | undefined
  readonly type?: string | undefined
}

/** What happened to an endpoint (`<tenant>/<endpoint>`), or with events of a type. */
export interface Group {
  readonly name: string
  readonly totals: Totals
  readonly spread: Spread
}

/** The groups that are shown, and the sum of the others. */
interface Grouped {
  readonly shown: ReadonlyArray<Group>
  /** `groups` is how many, at least: not all of very many are known apart. */
  readonly others: (Omit<Group, "name"> & { readonly groups: number }) | undefined
}

/** Groups that are kept apart; those that come later are counted together. */
const maxGroups = 10_000

interface Sum {
  totals: Totals
  readonly spread: Spread
}

/** What goes wrong most comes first. */
const worstFirst = (a: Group, b: Group): number =>
  b.totals.deadLettered - a.totals.deadLettered ||
  b.totals.attemptsFailed - a.totals.attemptsFailed ||
  b.totals.delivered - a.totals.delivered ||
  (a.name < b.name ? -1 : 1)

const idOf = (each: unknown): string | undefined =>
  typeof each === "object" && each !== null && "id" in each && typeof each.id === "string"
    ? each.id
    : undefined

/** What a fact says of each endpoint: a plan is one fact about many. */
export const partsByEndpoint = (
  fact: Omit<Groupable, "tenant">
): ReadonlyArray<readonly [endpoint: string, part: Summable]> => {
  const { endpoint = nobody, plan, ...alone } = fact
  const parts: Array<readonly [string, Summable]> = []
  const none = { part: 1, endpoints: [], skipped: [] }
  const add = (each: unknown, plan: NonNullable<Countable["plan"]>) => {
    const id = idOf(each)
    if (id !== undefined) parts.push([id, { kind: "routed", plan }])
  }
  for (const each of plan?.skipped ?? []) add(each, { ...none, skipped: [each] })
  for (const each of plan?.endpoints ?? []) add(each, { ...none, part: 0, endpoints: [each] })
  if (endpoint !== nobody) parts.push([endpoint, alone])
  return parts
}

/** The totals of endpoints or types. Memory is bounded, however many there are. */
export class Groups {
  readonly #by: Grouping
  readonly #most: number
  readonly #sums = new Map<string, Sum>()
  /** Names beyond the bound, to tell how many there are; itself bounded. */
  readonly #beyond = new Set<string>()
  readonly #rest: Sum = { totals: noTotals, spread: new Spread() }

  constructor(by: Grouping, most = maxGroups) {
    this.#by = by
    this.#most = most
  }

  /** Counts a fact. */
  note(fact: Groupable): void {
    if (this.#by === "type") this.#count(fact.type ?? nobody, fact)
    else
      for (const [name, part] of partsByEndpoint(fact)) this.#count(`${fact.tenant}/${name}`, part)
  }

  /** Returns the groups in which most went wrong. */
  top(limit: number): Grouped {
    const all = [...this.#sums].map(([name, sum]) => ({ name, ...sum })).sort(worstFirst)
    const shown = all.slice(0, limit)
    const groups = all.length - shown.length + this.#beyond.size
    if (groups === 0) return { shown, others: undefined }
    const spread = new Spread()
    spread.add(this.#rest.spread)
    let { totals } = this.#rest
    for (const hidden of all.slice(limit)) {
      totals = addTotals(totals, hidden.totals)
      spread.add(hidden.spread)
    }
    return { shown, others: { groups, totals, spread } }
  }

  #count(name: string, fact: Countable & Spreadable): void {
    const sum = this.#sumOf(name)
    sum.totals = afterCounting(sum.totals, fact)
    sum.spread.note(fact)
  }

  #sumOf(name: string): Sum {
    const known = this.#sums.get(name)
    if (known !== undefined) return known
    if (this.#sums.size >= this.#most) {
      if (this.#beyond.size < maxGroups) this.#beyond.add(name)
      return this.#rest
    }
    const sum = { totals: noTotals, spread: new Spread() }
    this.#sums.set(name, sum)
    return sum
  }
}
